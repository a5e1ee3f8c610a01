//! A lending library: books, members, and who borrowed what.

use super::{MS_PER_DAY, SEED, Sample, SampleCollection, between, index, one_of};
use crate::random::Random;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};

const BOOKS: u64 = 400;
const MEMBERS: u64 = 150;
const LOANS: u64 = 2_500;
/// 2025-12-31 00:00:00 UTC, the day on which the data set ends.
const TODAY_MS: i64 = 1_767_139_200_000;
/// How long a book may be kept.
const LOAN_DAYS: i64 = 21;

pub(super) const SAMPLE: Sample = Sample {
    name: "library",
    about: "A lending library: books, its members, and a year of loans.",
    collections: &[
        SampleCollection {
            name: "books",
            count: BOOKS,
            options: Vec::new,
            indexes: || {
                let by_author = DocumentBuf::new().with("author.family", 1).with("year", -1);
                vec![index("author_year", &by_author), index("genres", &DocumentBuf::new().with("genres", 1))]
            },
            documents: || Box::new((1..=BOOKS).map(book)),
        },
        SampleCollection {
            name: "members",
            count: MEMBERS,
            options: Vec::new,
            indexes: || {
                let by_email = index("email", &DocumentBuf::new().with("email", 1));
                vec![by_email.with("unique", true)]
            },
            documents: || Box::new((1..=MEMBERS).map(member)),
        },
        SampleCollection {
            name: "loans",
            count: LOANS,
            options: Vec::new,
            indexes: || {
                let by_member = DocumentBuf::new().with("member", 1).with("taken", -1);
                vec![index("member_taken", &by_member), index("book", &DocumentBuf::new().with("book", 1))]
            },
            documents: || Box::new((1..=LOANS).map(loan)),
        },
    ],
};

const GIVEN_NAMES: &[&str] = &[
    "Aiko", "Amara", "Anselm", "Beatriz", "Chidi", "Clara", "Daiki", "Elif", "Emil", "Farida", "Goran", "Hana", "Ines",
    "Jonas", "Kaya", "Leila", "Mateo", "Mirja", "Nadia", "Oskar", "Priya", "Quentin", "Rosa", "Sora", "Tomas", "Uma",
    "Viktor", "Wanda", "Yusuf", "Zoe",
];
const FAMILY_NAMES: &[&str] = &[
    "Abara",
    "Almeida",
    "Brandt",
    "Castell",
    "Demir",
    "Ekwall",
    "Fontaine",
    "Gruber",
    "Hayashi",
    "Ilves",
    "Jansen",
    "Kowal",
    "Lindqvist",
    "Marin",
    "Nakata",
    "Okoye",
    "Pereira",
    "Quist",
    "Rahimi",
    "Santoro",
    "Tanabe",
    "Urban",
    "Varga",
    "Weiss",
    "Yilmaz",
    "Zeman",
];
const QUALITIES: &[&str] = &[
    "Quiet",
    "Last",
    "Hidden",
    "Northern",
    "Borrowed",
    "Glass",
    "Distant",
    "Patient",
    "Unwritten",
    "Salt",
    "Silver",
    "Slow",
    "Winter",
    "Paper",
    "Burning",
    "Second",
];
const THINGS: &[&str] = &[
    "Harbour",
    "Orchard",
    "Lighthouse",
    "Archive",
    "Station",
    "River",
    "Garden",
    "Cartographer",
    "Bridge",
    "Letter",
    "Clockmaker",
    "Island",
    "Window",
    "Staircase",
    "Market",
    "Observatory",
];
const TOPICS: &[&str] =
    &["Bees", "Rivers", "Old Maps", "Bread", "Stars", "Bridges", "Small Towns", "Tea", "Winter Gardens", "Numbers"];
const GENRES: &[&str] =
    &["novel", "mystery", "history", "science", "travel", "poetry", "biography", "children", "cooking"];
const LANGUAGES: &[&str] = &["en", "en", "en", "ja", "ja", "de", "fr", "pt", "tr"];
const TOWNS: &[&str] = &["Ashby", "Kamome", "Lindenau", "Porto Velho", "Sandvik", "Vale"];

/// Each purpose has numbers of its own, so that a change of one collection leaves the others as they are.
fn random(purpose: u64, number: u64) -> Random {
    Random::of_document(SEED + purpose, number)
}

fn title(random: &mut Random) -> String {
    let (quality, thing) = (one_of(random, QUALITIES), one_of(random, THINGS));
    match random.below(4) {
        0 => format!("The {quality} {thing}"),
        1 => format!("{quality} {thing}s"),
        2 => format!("The {thing} at the {quality} {}", one_of(random, THINGS)),
        _ => format!("A Short History of {}", one_of(random, TOPICS)),
    }
}

fn name(random: &mut Random) -> DocumentBuf {
    DocumentBuf::new().with("given", one_of(random, GIVEN_NAMES)).with("family", one_of(random, FAMILY_NAMES))
}

fn book(number: u64) -> DocumentBuf {
    let mut random = random(1, number);
    // Few authors write most books.
    let author = random.below(60).min(random.below(60));
    let author = name(&mut self::random(2, author));
    let genres: ArrayBuf = match (one_of(&mut random, GENRES), one_of(&mut random, GENRES)) {
        (first, second) if first == second => [first].into_iter().collect(),
        (first, second) => [first, second].into_iter().collect(),
    };
    let year = 2025 - between(&mut random, 0, 90).min(between(&mut random, 0, 90));
    DocumentBuf::new()
        .with("_id", number as i32)
        .with("title", &title(&mut random))
        .with("author", &author)
        .with("year", year as i32)
        .with("language", one_of(&mut random, LANGUAGES))
        .with("genres", &genres)
        .with("pages", between(&mut random, 80, 720) as i32)
        .with("copies", between(&mut random, 1, 4) as i32)
}

fn member(number: u64) -> DocumentBuf {
    let mut random = random(3, number);
    let joined = TODAY_MS - between(&mut random, 370, 3_650) * MS_PER_DAY;
    let (given, family) = (one_of(&mut random, GIVEN_NAMES), one_of(&mut random, FAMILY_NAMES));
    let name = DocumentBuf::new().with("given", given).with("family", family);
    let email = format!("{}.{}{number}@example.org", given.to_lowercase(), family.to_lowercase());
    DocumentBuf::new()
        .with("_id", number as i32)
        .with("name", &name)
        .with("email", &email)
        .with("town", one_of(&mut random, TOWNS))
        .with("joined", ValueRef::DateTime(joined))
}

/// A loan of the last year. Loans that have not come back have no `returned`.
fn loan(number: u64) -> DocumentBuf {
    let mut random = random(4, number);
    let day = 364 - (number - 1) as i64 * 364 / LOANS as i64;
    let taken = TODAY_MS - day * MS_PER_DAY;
    // Some books and some members are busier than others.
    let book = 1 + random.below(BOOKS).min(random.below(BOOKS));
    let member = 1 + random.below(MEMBERS).min(random.below(MEMBERS));
    let kept_days = between(&mut random, 1, LOAN_DAYS + 9);
    let loan = DocumentBuf::new()
        .with("_id", number as i32)
        .with("book", book as i32)
        .with("member", member as i32)
        .with("taken", ValueRef::DateTime(taken))
        .with("due", ValueRef::DateTime(taken + LOAN_DAYS * MS_PER_DAY));
    if kept_days > day {
        return loan;
    }
    let loan = loan.with("returned", ValueRef::DateTime(taken + kept_days * MS_PER_DAY));
    let late = kept_days - LOAN_DAYS;
    if late > 0 { loan.with("fine", late as f64 * 0.25) } else { loan }
}
