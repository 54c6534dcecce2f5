"""Pages of annotations: labelling for annotators, campaigns for staff."""
