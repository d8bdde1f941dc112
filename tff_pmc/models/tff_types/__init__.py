"""Classes derived from TFF's own; importing one of these modules imports TFF."""
