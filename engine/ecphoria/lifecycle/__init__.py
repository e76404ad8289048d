"""What happens to memories after they were written."""
