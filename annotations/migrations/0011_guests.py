from django.db import migrations
from django.db.models import Exists, OuterRef

GUEST, ANNOTATOR, VIEW, LABEL = 'guest', 'annotator', 'view', 'label'
AT_ONCE = 500


def make_guests(apps, schema_editor):
    """Accounts that came by an invitation are guests, who may label on the benchmarks of their campaigns; not those whose
    role somebody changed since.
    """
    User, Entry = apps.get_model('accounts', 'User'), apps.get_model('accounts', 'AuditEntry')
    about = Entry.objects.filter(about=OuterRef('username')).order_by()
    came = about.filter(action='account-made', command='invitation')
    invited = User.objects.filter(Exists(came), ~Exists(about.filter(action='role-changed')), role=ANNOTATOR)
    every = list(invited.order_by('pk').values_list('pk', flat=True))
    for start in range(0, len(every), AT_ONCE):
        people = every[start : start + AT_ONCE]
        grant(apps, people)
        User.objects.filter(pk__in=people).update(role=GUEST)


def grant(apps, people):
    Grant, Membership = apps.get_model('accounts', 'Grant'), apps.get_model('annotations', 'Membership')
    members = Membership.objects.filter(annotator__person__in=people, withdrawn_at=None).order_by()
    labels = set(members.values_list('annotator__person', 'campaign__benchmark__slug'))
    theirs = Grant.objects.filter(person__in=people)
    had = {(person, slug): right for person, slug, right in theirs.values_list('person', 'benchmark', 'right')}
    new = [
        Grant(person_id=person, benchmark=slug, right=LABEL, invited=True)
        for person, slug in sorted(labels - had.keys())
    ]
    Grant.objects.bulk_create(new)
    # Whom somebody let see the benchmark goes on seeing it, and labels there as before.
    for person, slug in sorted(labels):
        if had.get((person, slug)) == VIEW:
            theirs.filter(person=person, benchmark=slug).update(right=LABEL)


class Migration(migrations.Migration):
    dependencies = [
        ('accounts', '0010_guests'),
        ('annotations', '0001_squashed_0010_consent_and_completion'),
    ]

    operations = [migrations.RunPython(make_guests, migrations.RunPython.noop)]
