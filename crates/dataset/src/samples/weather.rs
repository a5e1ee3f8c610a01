//! A fleet of weather stations on an island, and what they measured: a time series.

use super::{MS_PER_DAY, MS_PER_HOUR, SEED, Sample, SampleCollection, between, index, tenths};
use crate::random::Random;
use bunko_bson::{ArrayBuf, DocumentBuf, ValueRef};
use std::f64::consts::TAU;

const STATIONS: u64 = 24;
const DAYS: u64 = 21;
const READINGS: u64 = STATIONS * DAYS * 24;
/// 2025-06-01 00:00:00 UTC.
const START_MS: i64 = 1_748_736_000_000;

pub(super) const SAMPLE: Sample = Sample {
    name: "weather",
    about: "Weather stations of an island, and three weeks of their hourly readings, a time series.",
    collections: &[
        SampleCollection {
            name: "stations",
            count: STATIONS,
            options: Vec::new,
            indexes: || vec![index("location", &DocumentBuf::new().with("location", "2dsphere"))],
            documents: || Box::new((0..STATIONS).map(station)),
        },
        SampleCollection {
            name: "readings",
            count: READINGS,
            options: || {
                let series = DocumentBuf::new().with("timeField", "time").with("metaField", "station");
                vec![("timeseries", series.with("granularity", "hours"))]
            },
            indexes: Vec::new,
            documents: || Box::new((0..READINGS).map(|number| reading(number / STATIONS, number % STATIONS))),
        },
    ],
};

const PLACES: &[&str] = &[
    "North Cape",
    "Gull Rock",
    "Old Mill",
    "Harbour",
    "Fern Valley",
    "Upper Lake",
    "Saddle",
    "East Ridge",
    "Long Beach",
    "Salt Flats",
    "Chapel Hill",
    "Twin Pines",
];

fn name(number: u64) -> String {
    let place = PLACES[number as usize % PLACES.len()];
    if number < PLACES.len() as u64 { place.to_owned() } else { format!("{place} II") }
}

fn id(number: u64) -> String {
    format!("W{:02}", number + 1)
}

/// Height above the sea, in metres.
fn altitude(number: u64) -> i64 {
    between(&mut Random::of_document(SEED + 11, number), 2, 1_400)
}

fn station(number: u64) -> DocumentBuf {
    let mut random = Random::of_document(SEED + 10, number);
    let mut degrees = |middle: f64| ((middle + (random.fraction() - 0.5) * 0.8) * 10_000.0).round() / 10_000.0;
    let coordinates: ArrayBuf = [degrees(-28.0), degrees(38.5)].into_iter().collect();
    let location = DocumentBuf::new().with("type", "Point").with("coordinates", &coordinates);
    let installed = START_MS - between(&mut random, 100, 2_000) * MS_PER_DAY;
    DocumentBuf::new()
        .with("_id", &id(number))
        .with("name", &name(number))
        .with("location", &location)
        .with("altitude", altitude(number) as i32)
        .with("installed", ValueRef::DateTime(installed))
}

/// The measurements of a station in an hour of the three weeks.
fn reading(hour: u64, station: u64) -> DocumentBuf {
    let mut random = Random::of_document(SEED + 12, hour * STATIONS + station);
    // Fronts pass over the whole island in some five days.
    let front = libm::sin(hour as f64 / 120.0 * TAU) + 0.4 * libm::sin(hour as f64 / 41.0 * TAU);
    let warmth_of_day = -libm::cos((hour % 24) as f64 / 24.0 * TAU - 0.5);
    let mut noise = |width: f64| (random.fraction() - 0.5) * width;
    let temperature = 16.0 + 4.0 * warmth_of_day + 3.0 * front - altitude(station) as f64 * 0.0065 + noise(1.6);
    let humidity = (72.0 - 12.0 * warmth_of_day - 8.0 * front + noise(10.0)).clamp(20.0, 100.0);
    let pressure = 1_016.0 + 9.0 * front + noise(1.0);
    let wind = (6.0 - 3.0 * front + noise(6.0)).max(0.0);
    let rain = if humidity > 80.0 { (humidity - 80.0) * 0.2 + noise(1.0).abs() } else { 0.0 };
    DocumentBuf::new()
        .with("time", ValueRef::DateTime(START_MS + hour as i64 * MS_PER_HOUR))
        .with("station", &id(station))
        .with("temperature", tenths(temperature))
        .with("humidity", humidity.round() as i32)
        .with("pressure", tenths(pressure))
        .with("wind", tenths(wind))
        .with("rain", tenths(rain))
}
