"""Weekdays, months, seasons, and how many of one are in another."""
from .phrase import listed, number, say, upper_first
from .words import AMOUNTS, DAYS, MONTH_DAYS, MONTHS, ORDINALS, SEASON_MONTHS


def weekdays(rng):
    at = rng.randrange(7)
    day, step = DAYS[at], rng.choice((1, 1, 1, -1, -1, 2))
    other = DAYS[(at + step) % 7]
    if step == 1:
        question = say(rng, (
            "[Which|What] day [comes after|follows|is after|comes next after|comes right after] {d}[?|]",
            "[What is|What's|Tell me|Name] the day [after|that follows|following|right after] {d}[?|]",
            "[Today is|It is|If today is|Suppose it is] {d}[.|,] [what|which] day is [it |]tomorrow[?|]",
            "[If it is|When it is|If today is] {d}, [what|which day|what day] [comes next|will it be tomorrow|is tomorrow][?|]",
            "[The day after|After] {d} [is|comes][?| what?| which day?]", "[What comes after|What follows] {d}[?|]",
            "[Yesterday was|If yesterday was] {d}[.|,] [what|which] day is [it |]today[?|]",
            "{d} is over[.|,] [what|which] day [starts|begins|is it now|comes][?|]", "[What|Which] day is it the day after {d}[?|]", "[My holiday|My course|The party|The fair|Our trip|My exam|The game] [is|starts|begins] the day after {d}[.|,] [Which|which|what] day is that[?|]", "[{d} is today|Today we have {d}|We have {d} today][.|,|:] [and tomorrow|what is tomorrow|tomorrow is]?", "[I arrive|I come back|I call you] one day after {d}[.|, so] [which day is that|what day|on which day]?", "Next day after {d}[?|, please.]",
            "{d} [is followed by|comes before|precedes] [what|which day][?|]", "[And after|After] {d}[ then|, what|][?|]", "{d}, and [then|the next day|what comes then][?|]", "[I work until|The shop closes on|I stay until] {d}[.|,] [and which|Which|which] day comes [then|next|after that][?|]",
            "[One|A] day [later|after|past] {d}[?| is?| is which day?]", "[If|When] {d} was yesterday, what is today[?|]", "[The day that follows|The next day after|The day following] {d}[?|, please.| is?]", "[A day passes|A night passes] after {d}[.|:] [What|Which] day is it[ now|][?|]",
            "{d} [was yesterday|was the day before today][.|,] [what|which] day [do we have|is it|is today][?|]", "[I go to bed on|I fall asleep on] {d}[.|,] [on which day do|and on what day do] I wake up[?|]",
            "[Tomorrow|One day from now|In a day], if [today is|it is now] {d}, is [which day|what day][?|]"), d=day)
        return question, rng.choice((f"{other}.", f"{other} comes after {day}.", f"It is {other}."))
    if step == -1:
        question = say(rng, (
            "[Which|What] day [comes before|precedes|is before|comes right before|is just before] {d}[?|]",
            "[What is|What's|Tell me|Name] the day [before|that precedes|just before|preceding] {d}[?|]",
            "[Today is|It is|If today is|Suppose it is] {d}[.|,] [what|which] day was [it |]yesterday[?|]",
            "[The day before|Before] {d} [is|comes][?| what?| which day?]", "[What comes before|What precedes] {d}[?|]",
            "[Tomorrow is|If tomorrow is|Tomorrow will be] {d}[.|,] [what|which] day is [it |]today[?|]",
            "[If it is|When it is] {d}[ today|], what was [yesterday|the day before][?|]", "[What|Which] day was it [the day before|one day before] {d}[?|]", "[My holiday|The party|The fair|Our trip|My exam] [ended|was] the day before {d}[.|,] [Which|which|what] day [was|is] that[?|]", "[{d} is today|Today we have {d}][.|,|:] [and yesterday|what was yesterday]?", "{d} [is preceded by|comes after|follows] [what|which day][?|]", "[And before|Before] {d}[, what|, which day|][?|]", "[One|A] day [earlier than|before] {d}[?| is?| is which day?]", "[If|When] {d} is tomorrow, what is today[?|]",
            "[The day that comes before|The last day before|The day preceding] {d}[?|, please.| is?]", "{d} is tomorrow[.|,] [so what|what|which] day [do we have|is it|is today][?|]", "[I woke up on|It is the morning of] {d}[.|,] [on which day|which day] did I go to bed[?|]", "[The eve of|The night before] {d} is [which day|what day][?|]",
            "[I must be ready|It has to be done] the day before {d}[.|, so] [which day is that|on which day|when]?"), d=day)
        return question, rng.choice((f"{other}.", f"{other} comes before {day}.", f"It is {other}."))
    question = say(rng, (
        "[Which|What] day [is|comes|will it be] [two days after|2 days after] {d}[?|]",
        "[What is|What's|Tell me] the day [two days after|after the day after] {d}[?|]",
        "[Today is|It is|If today is|If it is] {d}[.|,] [what|which] day [is it|will it be|comes|is] [in two days|the day after tomorrow|two days from now|in 2 days|two days later][?|]",
        "{d} plus two days[?| is which day?| is what?]", "[My parcel|My friend|The bus|My visitor] [comes|arrives] two days after {d}[.|,] [Which|which|what] day is that[?|]", "[It is|Today is] {d}, and in two days [I travel|we meet|the fair begins][.|,] [Which|which|what] day is that[?|]", "[Skip one day after|Leave out one day after] {d}[.|:] [Which|which] day [comes|is it][?|]", "[Which|What] day do I get when I add [two|2] days to {d}[?|]", "The day after tomorrow, if [today is|it is] {d}[?| is which day?]", "[Today is|It is] {d}[.|,] [and the|The] day after tomorrow[?| is what?]",
        "[I leave on|I start on] {d} and arrive [two|2] days later[.|,] [Which|which|on what] day is that[?|]", "[Two|2] days later than {d}[?| is?]", "[Two|2] days [from|after|past] {d}[?| is which day?| is what day?]"), d=day)
    return upper_first(question), rng.choice((f"{other}.", f"It is {other}.", f"Two days after {day} is {other}."))


def months(rng):
    at = rng.randrange(12)
    month, kind = MONTHS[at], rng.random()
    if kind < 0.35:
        other = MONTHS[(at + 1) % 12]
        question = say(rng, (
            "[Which|What] month [comes after|follows|is after|comes next after|comes right after] {m}[?|]",
            "[What is|What's|Tell me|Name] the month [after|that follows|following|right after] {m}[?|]",
            "[It is|If it is|This month is|We are in|Now it is] {m}[.|,] [what|which] month [comes next|is next|is next month|will it be next month][?|]",
            "[When|Once|As soon as] {m} [is over|ends|has ended], [what|which] month [begins|starts|comes][?|]",
            "[The month after|After] {m} [is|comes][?| what?| which month?]",
            "{m} is followed by [what|which month][?|]", "{m}, and [then|the next month|what comes then][?|]", "[One|A] month [after|later than] {m}[?| is?| is which month?]", "[And after|After] {m}[, what|][?|]", "[The next|Next] month after {m}[?|, please.| is?]", "{m} comes [right |just |]before [what|which month][?|]",
            "[A month passes|Four weeks go by|A month goes by] after {m}[.|:] [Which|What] month is it[?|]", "[The rent is paid for|I turn over the calendar from] {m}[.|,] [which|what] month comes [next|then][?|]", "[I travel|The school starts|We move|My birthday is|The work begins] in the month after {m}[.|,] [Which|which] month is [it|that][?|]", "{m} is [nearly over|almost done|ending][.|,] [Which|which|what] month is next[?|]", "[Last month was|If last month was] {m}[.|,] [what|which] month is it[ now|][?|]"), m=month)
        return question, rng.choice((f"{other}.", f"{other} comes after {month}.", f"It is {other}."))
    if kind < 0.6:
        other = MONTHS[(at - 1) % 12]
        question = say(rng, (
            "[Which|What] month [comes before|precedes|is before|comes right before|is just before] {m}[?|]",
            "[What is|What's|Tell me|Name] the month [before|that precedes|just before|preceding] {m}[?|]",
            "[It is|If it is|We are in|Now it is] {m}[.|,] [what|which] month was [it last month|last month|the last one|it before][?|]",
            "[The month before|Before] {m} [is|comes][?| what?| which month?]",
            "{m} is preceded by [what|which month][?|]", "[One|A] month [before|earlier than] {m}[?| is?| is which month?]", "[And before|Before] {m}[, what|][?|]", "{m} [follows|comes right after|comes just after] [what|which month][?|]", "[The last|The] month before {m}[?|, please.| is?]", "[Going back a month|A month back] from {m}[?|, where am I?|, which month is it?]",
            "[I travelled|It happened|We moved|My birthday is] in the month before {m}[.|,] [Which|which] month is [it|that][?|]", "[Next month is|If next month is] {m}[.|,] [what|which] month is it[ now|][?|]"), m=month)
        return question, rng.choice((f"{other}.", f"{other} comes before {month}.", f"It is {other}."))
    if kind < 0.8:
        nth = rng.choice((ORDINALS[at], ORDINALS[at], {1: "1st", 2: "2nd", 3: "3rd"}.get(at + 1, f"{at + 1}th")))
        question = say(rng, ("[Which|What] [is|month is] the {n} month[ of the year| of a year| in the year|][?|]",
                             "[Name|Tell me|What is|What's] the {n} month[ of the year| of a year| in a year|][?|]",
                             "The {n} month [is|is called][?| what?| which?]", "[Month number|Month] {k}[?| is| is which?| is called what?| of the year?]",
                             "[What|Which] month [comes|is] {n} [in|of] [the|a] year[?|]", "[The|And the] {n} month, what is [it called|its name|it][?|]", "[What's|What is] the name of the {n} month[?|]", "[Of twelve months|Of all months], which is the {n}[?|]", "[How|What] is the {n} month called[?|]", "[Which|What] month has the number {k}[?|]", "[On a calendar|In a calendar|In the calendar], [which|what] month [is|comes] {n}[?|]", "[I was born|It happened|My birthday is] in the {n} month[.|,] [Which|which] is that[?|]",
                             "[On the form|In the date] the month is {k}[.|,] [Which|which] month is that[?|]", "[A date has|It says] month {k}[: which one|, which is it][?|]", "The {n} of the [twelve |]months[?|, please.| is?]"), n=nth, k=at + 1)
        return question, rng.choice((f"{month}.", f"The {nth} month is {month}."))
    question = say(rng, ("[Which|What] number is the month {m}[?|]", "{m} is [which|what] month of the year[?|]",
                         "[What is|Tell me] the number of the month {m}[?|]", "[Where|At which place] in the year does {m} come[?|]"),
                   m=month)
    return question, f"{month} is the {ORDINALS[at]} month."


def month_days(rng):
    month = rng.choice(MONTHS + ["February"] * 2)
    leap = month == "February" and rng.random() < 0.4
    year = " [in a leap year|when it is a leap year|if the year is a leap year]" if leap else (
        "[| in a usual year| in a normal year]" if month == "February" else "")
    question = say(rng, ("How many days [are there in|are in|belong to] {m}" + year + "[?|]", "How many days has {m}" + year + "[?|]",
                         "How many days does {m} have" + year + "[?|]", "How many days long is {m}" + year + "[?|]",
                         "[How long is|What is the length of] {m}" + year + "[ in days|, in days|][?|]",
                         "How many days [make up|make|fill] {m}" + year + "[?|]", "With which day number does {m} end" + year + "[?|]", "{m}" + year + "[: how many days?|, how many days?| counts how many days?| lasts how many days?]", "[Tell me|I forgot|Do you know|I need] [the number of days in|how many days there are in|the length of] {m}" + year + "[.|?|]",
                         "How many [dates|squares|days] [does the calendar|must a calendar] show for {m}" + year + "[?|]", "[Has {m}|Does {m} have] [28, 29, 30 or 31|30 or 31] days[?|]" if not leap and month != "February" else "How many days has {m}" + year + "[?|]", "[I am away|I rent it|It lasts] all of {m}" + year + "[. How many days is that?|, how many days is that?]", "[Number of days|The number of days|Days] in {m}" + year + "[?|, please|]",
                         "{m}" + year + "[ has|: has] how many days[?|]"), m=month)
    days = 29 if leap else MONTH_DAYS[month]
    if leap:
        return question, rng.choice(("29 days.", "In a leap year February has 29 days."))
    if month == "February":
        return question, rng.choice(("28 days, or 29 in a leap year.", "February has 28 days, in a leap year 29."))
    return question, rng.choice((f"{days} days.", f"{month} has {days} days."))


def amounts(rng):
    whole, part, count = rng.choice(AMOUNTS)
    question = say(rng, ("How many {p} [are there in|are in|make|make up|does it take for] {w}[?|]",
                         "How many {p} has {w}[?|]", "How many {p} does {w} have[?|]",
                         "[What is|Tell me|Give me] the number of {p} in {w}[?|.|]", "[One|1] {b} is how many {p}[?|]",
                         "{W} [has|is|lasts|consists of|contains] how many {p}[?|]", "{P} in {w}[?|, how many?|: how many?]", "{P} per {b}[?|, please.|: how many?]", "How many {p} [are in one|go into one|fit into one|do I have in one] {b}[?|]", "[Tell me|I forgot|Do you know] how many {p} {w} has[.|?|]",
                         "[A|One] {b} [has|holds] [what|which] number of {p}[?|]", "How many {p} [fill|pass in|go by in|are there to|count as] {w}[?|]", "{W}[, in {p}|, counted in {p}|, measured in {p}][?|: how many?|, is how much?]", "How long is {w} in {p}[?|]", "[Into how many {p} is|In how many {p} is] {w} [divided|split][?|]",
                         "[I wait|It lasts|It takes|I am away for] {w}[.|:] How many {p} is that[?|]", "How many {p} must pass [until|before] {w} [is over|has passed][?|]", "[I forgot|I never remember|My child asks] how many {p} [there are in|make|are in] {w}[.|?|]", "[Convert|Change|Turn] {w} [to|into] {p}[.|]",
                         "[If I wait|When I wait] {w}, how many {p} [is that|have passed|do I wait][?|]"),
                   p=part, P=upper_first(part), w=f"{'an' if whole == 'hour' else 'a'} {whole}", b=whole,
                   W=f"{'An' if whole == 'hour' else 'A'} {whole}")
    many = f"{count}" if count == 365 else number(rng, count)
    return question, rng.choice((f"{upper_first(many)} {part}.", f"{'An' if whole == 'hour' else 'A'} {whole} has {many} {part}.",
                                 f"There are {many} {part} in {'an' if whole == 'hour' else 'a'} {whole}."))


def seasons(rng):
    season = rng.choice(list(SEASON_MONTHS))
    inside, kind = SEASON_MONTHS[season], rng.random()
    if kind < 0.55:
        month = rng.choice(inside)
        question = say(rng, ("[Which|What] season is {m} in[?|]", "[Which|What] season [is it|do we have|is there] in {m}[?|]",
                             "[In which|In what] season [is|lies|falls] {m}[?|]", "{m} [is in|belongs to|falls in|is part of] [which|what] season[?|]",
                             "[It is|If it is|We are in] {m}[.|,] [which|what] season is [it|that][?|]", "[Tell me|Name] the season of {m}[.|]",
                             "{m}: [which|what] season[?|]", "[What|Which] season [does|would] {m} [belong to|fall in|lie in][?|]", "[Is {m}|Does {m} fall] in [winter, spring, summer or autumn|which of the four seasons][?|]", "{m} is [a winter, spring, summer or autumn month|a month of which season|which season][?|]", "[In|During] {m} [it is|we have|there is] [which|what] season[?|]",
                             "[Into which|To which] season does {m} belong[?|]", "[What's|What is] the season [in|during|of] {m}[?|]", "[They met|We met|It happened|He left] in {m}[.|,] [which|what] season was [that|it][?|]", "[The calendar shows|The page says] {m}[.|,] [which|what] season is [it|that][?|]", "[Season|The season] [in|of] {m}[?|, please.]", "[I was born|My birthday is|We marry|The fair is|I travel] in {m}[.|,|:] [Which|which|what] season is that[?|]", "[We have|It's|Now it is|Now is] {m}[ now|][,|:] [so |and |]which season [is that|is it|do we have][?|]", "[A day in|Somewhere in|The middle of] {m} is [in|part of] which season[?|]"), m=month)
        return question, rng.choice((f"{upper_first(season)}.", f"{month} is in {season}.", f"It is {season}."))
    if kind < 0.75:
        question = say(rng, ("[Which|What] months [are in|belong to|make up] {s}[?|]", "[Name|List|Tell me] the [three |]months of {s}[.|]",
                             "[When is|When do we have|In which months is] {s}[?|]", "[What are|Which are] the months of {s}[?|]", "{s} [has|consists of|lasts for|is made of] which months[?|]", "[From when to when|From which month to which month|How long] [is|lasts] {s}[?|]", "[The|Which three|What three] months [of|are in] {s}[?|]", "[Tell me|Say] [when|in which months] [it is|we have] {s}[.|]"), s=season)
        return question, f"{listed(inside)}."
    if kind < 0.85:
        first = rng.random() < 0.5
        question = say(rng, ("[When|In which month|In what month] does {s} {v}[?|]", "[What|Which] is the {n} month of {s}[?|]",
                             "{S} {v}s in [which|what] month[?|]", "[With|In] which month does {s} {v}[?|]", "The {n} month of {s}[?|, please.| is?]", "[Tell me|I forgot] [when {s} {v}s|in which month {s} {v}s][.|]"), s=season, S=upper_first(season), v="begin" if first else "end", n="first" if first else "last")
        return question, rng.choice((f"In {inside[0] if first else inside[2]}.", f"{upper_first(season)} {'begins' if first else 'ends'} in {inside[0] if first else inside[2]}."))
    order = ["winter", "spring", "summer", "autumn"]
    at = order.index(season)
    if rng.random() < 0.6:
        question = say(rng, ("[Which|What] season [comes after|follows|is after] {s}[?|]", "[What comes after|What follows] {s}[?|]", "[The season after|After] {s} [is|comes][?| what?]", "{S} is over[.|,] [which|what] season [comes|begins|is next][?|]", "[What is|Tell me|Name] the [season after|next season after] {s}[?|.|]", "{S} is followed by [what|which season][?|]", "[And after|After] {s}[?|, what?]"), S=upper_first(season), s=season)
        return question, f"{upper_first(order[(at + 1) % 4])}."
    question = say(rng, ("[Which|What] season [comes before|precedes|is before] {s}[?|]", "[What comes before|The season before] {s}[?|]", "[What is|Tell me|Name] the season before {s}[?|.|]", "{S} follows [what|which season][?|]", "[What|Which season] [ends|is over] when {s} begins[?|]", "[And before|Before] {s}[?|, what?]"), S=upper_first(season), s=season)
    return question, f"{upper_first(order[(at - 1) % 4])}."


def week(rng):
    return rng.choice((
        lambda: (say(rng, ("[Which|What] days [are|make|belong to|make up] the weekend[?|]", "[What|When] is the weekend[?|]", "[Name|Tell me|List] the [two |]days of the weekend[.|]",
                           "[On which days|When] do people [rest|stay at home|have the weekend][?|]", "[The weekend|Weekend][: which days?|, which days?| is which days?| is when?]", "Of [which|what] days [does the weekend consist|is the weekend made][?|]", "[After Friday comes the weekend|The weekend has two days][.|:] [Which|which] days are [they|that][?|]", "[Which|What] days do [children|pupils] not go to school[?|]", "[Which|What] two days are [not working days|the weekend|at the end of the week][?|]")),
                 "Saturday and Sunday."),
        lambda: (say(rng, ("[Which|What] is the first day of the week[?|]", "[With which day|On which day|When] does the week [begin|start][?|]", "[Name|Tell me] the first day of [the|a] week[.|]",
                           "The week [starts|begins] [on|with] [which|what] day[?|]", "[Which|What] day [starts|opens|begins|comes first in] [the|a] week[?|]", "[First day|The first day] of [the|a] week[?|, please.| is?]", "[A new|A] week [starts|begins][.|:] [Which|which|What] day is it[?|]")), "Monday."),
        lambda: (say(rng, ("[Which|What] is the last day of the week[?|]", "[With which day|On which day|When] does the week end[?|]")), "Sunday."),
        lambda: (lambda d: (say(rng, ("Is {d} [part of|in|a day of] the weekend[?|]", "Does {d} belong to the weekend[?|]",
                                      "Is {d} a [working day|weekday] or [the weekend|part of the weekend][?|]"), d=d), ("Yes, {d} is part of the weekend." if d in DAYS[5:] else "No, {d} is not part of the weekend.").format(d=d)))(rng.choice(DAYS)),
        lambda: (say(rng, ("[Which|What] is the last month of [the|a] year[?|]", "[When|With which month] does the year end[?|]")), "December."),
        lambda: (say(rng, ("[Which|What] is the first month of [the|a] year[?|]", "[When|With which month] does the year [begin|start][?|]")), "January."),
        lambda: (say(rng, ("[Which|What] is the shortest month[?| of the year?]", "[Which|What] month has the fewest days[?|]", "[Which|What] month has [only |][28|twenty-eight] days[?|]", "[Which|What] month is [the shortest|shorter than the others|shortest of all][?|]", "[28|Twenty-eight|Only 28] days[: which month?|, which month is that?|: what month has so few?]", "[Name|Tell me] the [shortest month|month with 28 days|month with the fewest days][.|]", "[In which|Which] month [is there a leap day|has 29 days in a leap year|gets a day more in a leap year][?|]")), "February."),
        lambda: (say(rng, ("[List|Name|Tell me|What are] [all |]the days of the week[?|.|]", "[What|Which] days [has a week|are there in a week][?|]")), f"{listed(DAYS)}."),
        lambda: (say(rng, ("[List|Name|Tell me|What are] [all |]the [four |]seasons[?|.|]", "[What|Which] seasons [are there|does a year have][?|]")), "Spring, summer, autumn and winter."),
    ))()


def ask(rng):
    return rng.choice((weekdays, weekdays, weekdays, months, months, months, month_days, month_days, amounts, amounts, seasons, seasons, week))(rng)
