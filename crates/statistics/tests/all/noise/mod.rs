//! Seeded noise like that of machines with other users.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// The distribution of repetitions of the same thing, on logarithms.
#[derive(Clone, Copy, Debug)]
pub enum Noise {
    /// Normal with this deviation.
    Normal(f64),
    /// Student's t with 3 degrees of freedom, scaled to this deviation: mostly calm, now and then far off.
    HeavyTailed(f64),
    /// Normal with this deviation, and one run in ten is slower by 10 to 40 %.
    Stalling(f64),
}

/// A stream of noise.
pub struct Source(Xoshiro256PlusPlus);

impl Source {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A standard normal value, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let (radius, angle): (f64, f64) = (self.0.random(), self.0.random());
        (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// A figure at `level`, with noise.
    pub fn disturb(&mut self, level: f64, noise: Noise) -> f64 {
        let logarithm = match noise {
            Noise::Normal(deviation) => deviation * self.normal(),
            Noise::HeavyTailed(deviation) => {
                let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
                // With 3 degrees of freedom, t has a variance of 3.
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
