"""From run folders to tables and figures; knows nothing of training or TFF."""
