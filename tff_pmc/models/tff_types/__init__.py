"""Classes derived from TFF's; importing one of these modules imports TFF."""
