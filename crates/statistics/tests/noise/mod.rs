//! Seeded noise like that of machines that others use too.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// How repetitions of the same thing differ, on the logarithms.
#[derive(Clone, Copy, Debug)]
pub enum Noise {
    /// With that deviation.
    Normal(f64),
    /// Student's t with 3 degrees of freedom, scaled to that deviation: mostly calm, now and then far off.
    HeavyTailed(f64),
    /// Normal with that deviation, and every tenth run slower by 10 to 40 %.
    Stalling(f64),
}

/// A stream of noise.
pub struct Source(Xoshiro256PlusPlus);

impl Source {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let (radius, angle): (f64, f64) = (self.0.random(), self.0.random());
        (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// A figure of the same `level`, disturbed.
    pub fn disturb(&mut self, level: f64, noise: Noise) -> f64 {
        let logarithm = match noise {
            Noise::Normal(deviation) => deviation * self.normal(),
            Noise::HeavyTailed(deviation) => {
                let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
                // t has a variance of 3 with 3 degrees of freedom.
                deviation * self.normal() / (squares / 3.0).sqrt() / 3_f64.sqrt()
            }
            Noise::Stalling(deviation) => {
                let stall = if self.0.random::<f64>() < 0.1 { self.0.random_range(0.6_f64..0.9).ln() } else { 0.0 };
                deviation * self.normal() + stall
            }
        };
        level * logarithm.exp()
    }
}
