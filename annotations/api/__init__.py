"""The API of campaigns and labels."""
