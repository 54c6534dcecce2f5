"""What a benchmark asks and shows, in counts."""

from bank.samples import contents


def test_instructions_are_counted_by_their_first_word_or_by_two_characters_where_words_are_not_set_apart():
    said = ["What is it?", "what's that", "Describe the dog.", "describe: all", "", "  ", "描述图片", "描述一下"]
    counts = contents.first_words(said)
    assert counts == {"describe": 2, "描述": 2, "what": 1, "what's": 1}


def test_verbs_are_counted_with_their_four_most_frequent_objects():
    said = ["describe: picture"] * 3 + ["describe: dog", "describe", "write: poem", "write: essay", "go"]
    said += ["write: song", "write: song", "write: list", "write: tale"]
    assert contents.verbs(said) == {"describe (picture, dog)": 5, "write (song, poem, essay, list)": 6, "go": 1}


def test_an_object_counts_once_in_each_picture_whatever_its_box():
    lists = [["Red cup: 1, 2, 3, 4", "red cup: 5, 6, 7, 8", "table: 0, 0, 9, 9"], ["red cup"], [""]]
    assert contents.objects(lists) == {"red cup": 2, "table": 1}
