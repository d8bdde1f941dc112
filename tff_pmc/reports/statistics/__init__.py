"""What is computed from runs: data frames in, data frames and sentences out."""
