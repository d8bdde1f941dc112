"""What happens at the clients: packing, local training, local evaluation."""
