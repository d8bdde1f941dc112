"""Models as subclasses of TFF's classes; importing these modules imports TFF."""
