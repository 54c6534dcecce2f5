"""Who may read labels one by one, on items that nobody labels blind (``Item.blind``)."""

from accounts.rules import Viewer, allowed


def sees_labels(viewer: Viewer) -> bool:
    """Whether the viewer may see single labels. Others see what most people said."""
    return allowed(viewer, "read-labels")
