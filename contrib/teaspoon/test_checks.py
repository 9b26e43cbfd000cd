#!/usr/bin/env python3
"""Tests of what counts as a right reply to a plain question; the replies are made by hand."""
import unittest

from checks import numbers, passes
from plain import prompts

# question: (right replies, wrong ones)
REPLIES = {
    "What is two plus three?": (("5", "Five.", "2 + 3 = 5", "Two plus three is five.", "5 is 2 plus 3.", "The sum of two and three is 5."),
                                ("", "6", "Two plus three.", "2 + 3", "2 + 3 = 6", "3 + 3 = 5", "Fifteen.", "25", "5 or 6", "Twenty-five", "twenty five", "I do not know.", "-5")),
    "What is 5 plus 0?": (("5", "5 + 0 = 5", "five"), ("5 + 0", "5 + 0 = 0", "5 + 0 = 6", "0", "50")),
    "3 + 4": (("7", "3 + 4 = 7", "3+4=7", "seven"), ("seventeen", "17", "70", "3 + 4 = 17", "3 + 4 = 34")),
    "What is 10 - 5?": (("5", "10 - 5 = 5", "Five."), ("10 - 5", "10", "5 - 10 = 5", "10 - 5 = 10", "15", "10 - 5 = -5")),
    "What is eight minus eight?": (("0", "Zero.", "8 - 8 = 0"), ("8", "8 - 8", "16", "8 - 8 = 8")),
    "What is seven times three?": (("21", "Twenty-one.", "twenty one", "7 x 3 = 21", "7x3=21"), ("twenty", "one", "24", "7 x 3", "10", "7 x 3 = 210")),
    "What is double 1?": (("2", "Twice 1 is 2.", "1 + 1 = 2", "Two"), ("1", "Twice 1 is 1.", "12")),
    "What is double 8?": (("16", "Twice 8 is 16.", "8 + 8 = 16", "2 x 8 = 16"), ("8", "Double 8 is 18.", "6")),
    "What is half of 4?": (("2", "Half of 4 is 2.", "4 / 2 = 2"), ("4", "Half of 4 is 4.", "8")),
    "What number comes after 19?": (("20", "Twenty.", "20 comes after 19."), ("19", "18", "21", "29", "19 comes after 20, so 18")),
    "What number comes after 29?": (("30", "Thirty", "After 29 comes 30."), ("29", "28", "thirteen")),
    "Which is larger, 2 or 85?": (("85", "85 is larger.", "Eighty-five", "85 is larger than 2.", "2 is smaller than 85.", "Of 2 and 85, 85 is larger.", "The larger one is 85."),
                                  ("2", "2 is larger.", "2 is larger than 85.", "8", "85 is smaller.", "Which is larger, 2 or 85?", "5", "They are equal.")),
    "Is 7 even or odd?": (("Odd.", "7 is odd.", "It is odd, not even.", "Seven is an odd number."), ("Even.", "7 is even.", "8 is odd.", "Is 7 even or odd?", "It is not odd.")),
    "Is 8 odd?": (("No.", "No, 8 is even.", "No, it is even."), ("Yes.", "Yes, 8 is odd.", "8 is odd.", "8")),
    "Is 8 even?": (("Yes.", "Yes, 8 is even."), ("No.", "No, 8 is odd.", "8")),
    "What day comes after Monday?": (("Tuesday.", "Tuesday comes after Monday.", "The day after Monday is Tuesday."), ("Monday.", "Sunday.", "Wednesday comes after Monday.", "Monday comes after Tuesday.", "Tuesday or Wednesday.")),
    "What is the third month?": (("March.", "March is the third month."), ("April", "The third month.", "March or April")),
    "How many days are in February?": (("28", "28 days, or 29 in a leap year.", "Twenty-eight"), ("29", "30", "31")),
    "How many days are in May?": (("31", "May has thirty-one days."), ("30", "13", "May has 3 days and 1.")),
    "How many days are in a year?": (("365", "A year has 365 days."), ("366", "36", "12")),
    "How many days are in a week?": (("7", "One week has seven days."), ("5", "A week", "17")),
    "What season is July?": (("Summer.", "July is in summer."), ("Winter", "spring, or summer", "July")),
    "Which months are in winter?": (("December, January and February.",), ("December and January.", "December, January, February, March", "Winter.")),
    "What colour do red and yellow make?": (("Orange.", "Red and yellow make orange."), ("Red and yellow.", "green", "orange or brown")),
    "What colour is an orange?": (("Orange.", "An orange is orange."), ("Yellow.", "red")),
    "What do green and brown make?": (("I do not know.", "I don't know."), ("Blue.",)),
    "What sound does a dog make?": (("A dog barks.", "Barks.", "Woof!"), ("A dog meows.", "A dog makes no sound.", "A bark or a moo.")),
    "How many legs does a snake have?": (("None.", "A snake has no legs.", "0"), ("4", "Four.", "A snake has 2 legs.")),
    "How many legs does a spider have?": (("8", "A spider has eight legs.", "Eight."), ("6", "18", "Eighty")),
    "What is a baby dog called?": (("A puppy.", "A young dog is called a puppy."), ("A kitten.", "A dog", "pup")),
    "Can a dog fly?": (("No.", "No, a dog cannot fly."), ("Yes.", "Yes, a dog can fly.")),
    "Can a bee fly?": (("Yes.", "A bee can fly."), ("No.", "A bee cannot fly.")),
    "What is the opposite of old?": (("New, or young.", "New.", "young"), ("old", "big")),
    "Spell cat.": (("c-a-t", "C-A-T.", "c a t", "cat: c-a-t"), ("cat", "c-a-t-s", "c-a-a-t", "s-c-a-t", "k-a-t")),
    "What is the first letter of cat?": (("C.", "The first letter of cat is c.", 'It is "c".', "c", "C is the first letter of cat."), ("T.", "cat", "c-a-t", "k")),
    "What is the last letter of cat?": (("T", "c-a-t: the last letter is t.", "t"), ("c", "cat", "c-a-t")),
    "How many letters are in cat?": (("3", "c-a-t: three letters.", "Cat has 3 letters."), ("4", "cat", "c-a-t", "thirteen")),
    "Name three colours.": (("Red, blue and green.", "red, yellow, pink"), ("Red and blue.", "Red, blue, red.", "Red, blue, green and pink.", "cat, dog, cow")),
    "Name three fruits.": (("Apples, cherries and plums.", "apple, pear, plum"), ("apple, apple, pear", "apple, apples, pear", "apple, dog, pear")),
    "Name a tool.": (("Hammer.", "A saw."), ("A dog.", "hammer and saw")),
    "Name 3 numbers.": (("3, 7 and 9.", "one, two, three"), ("1, 2", "4, 4, 5", "1, 2, 3, 4")),
    "Count from 1 to 5.": (("1, 2, 3, 4, 5.", "One, two, three, four, five.", "1 2 3 4 5", "From 1 to 5: 1, 2, 3, 4, 5"), ("1, 2, 3, 4", "1, 2, 3, 4, 5, 6", "1, 2, 4, 5", "5, 4, 3, 2, 1")),
    "Sort 7, 3, 9.": (("3, 7, 9.", "3 7 9", "3, 7 and 9"), ("7, 3, 9", "3, 7", "3, 7, 9, 9", "9, 7, 3", "13, 7, 9")),
    "Reverse: cat, dog, cow.": (("cow, dog, cat.", "Cow, dog and cat", "Reversed: cow, dog, cat"), ("cat, dog, cow", "cow, dog", "cow, dog, cat, cow", "cow, cat, dog")),
    "Say hello.": (("Hello.", "hello", '"Hello!"'), ("Hello hello.", "bye", "Say hello.", "I say hello")),
    "What is samovar?": (("Samovar is a daemon that keeps a language model in memory.",), ("A kettle.", "A small model.", "A heated urn.")),
    "What is a block?": (("A block is 16 positions of KV for all layers.", "Sixteen positions of KV."), ("A block is a piece of text.", "The bytes of a block.", "16 bytes")),
    "What does fork do?": (("It makes a second sequence that shares all blocks of the first.",), ("It is one forward pass.", "I do not know.")),
    "How do I start samovar?": (("Run `samovard &`.", "With samovard &."), ("pkill samovard", "samovar ask", "Run `contrib/test`.")),
    "How do I stop samovar?": (("Run `pkill samovard`.", "Press Ctrl-C.", "kill it"), ("Run `samovard &`.", "samovar stop")),
}


class Checks(unittest.TestCase):
    def test_replies_made_by_hand_are_judged_as_a_person_would(self):
        checks = {prompt["messages"][-1]["content"]: prompt["check"] for prompt in prompts()}
        for question, (right, wrong) in REPLIES.items():
            for reply, is_right in [(one, True) for one in right] + [(one, False) for one in wrong]:
                with self.subTest(question=question, reply=reply):
                    self.assertEqual(passes(checks[question], reply), is_right)

    def test_silence_answers_nothing_and_an_echo_or_another_text_next_to_nothing(self):
        asked = list(prompts(20))
        for reply in ("", " ", "?"):
            self.assertEqual([one["id"] for one in asked if passes(one["check"], reply)], [])
        # "Name one animal." is answered by any cat, and some questions have their answer in them.
        echoes = [one for one in asked if one["kind"] not in ("samovar", "say it", "talk")]
        self.assertLess(sum(passes(one["check"], one["messages"][-1]["content"]) for one in echoes), 0.03 * len(echoes))
        self.assertLess(sum(passes(one["check"], "The cat sat on the mat.") for one in asked), 0.03 * len(asked))

    def test_numbers_are_read_in_digits_and_in_words(self):
        self.assertEqual(numbers("Twenty one, twenty-two, 3x4=12, -5; 7 - 2; a hundred, six-legged"), [21, 22, 3, 4, 12, -5, 7, 2, 100, 6])
        self.assertEqual(numbers("the larger one is 7"), [7])
        self.assertEqual(numbers("one and 7", known=[1]), [1, 7])

    def test_the_questions_are_the_same_each_time_and_a_part_is_a_part(self):
        self.assertEqual(list(prompts(5)), list(prompts(5)))
        every = {prompt["id"]: prompt for prompt in prompts()}
        self.assertTrue(all(every[prompt["id"]] == prompt for prompt in prompts(3)))


if __name__ == "__main__":
    unittest.main()
