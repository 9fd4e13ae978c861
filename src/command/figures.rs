//! Numbers, times and places as people read them.

/// `1,234,567`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 sample`, `1,234 samples`.
pub(super) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// `12 %`, rounded; 0 % of nothing.
pub(super) fn share(part: u64, whole: u64) -> String {
    let percent = (u128::from(part) * 200 + u128::from(whole)) / (u128::from(whole) * 2).max(1);
    format!("{} %", percent.min(100))
}

/// `0.31 %`, rounded; 0 % of nothing.
pub(super) fn fine_share(part: u64, whole: u64) -> String {
    let hundredths = (u128::from(part) * 20_000 + u128::from(whole)) / (u128::from(whole) * 2).max(1);
    match hundredths {
        0 => "0 %".to_owned(),
        hundredths => format!("{}.{:02} %", hundredths / 100, hundredths % 100),
    }
}

/// `45 s`, `2 min 5 s`, `3 h 4 min`.
pub(super) fn duration(seconds: u64) -> String {
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// `just now`, `5 min ago`, `3 h ago`, `12 days ago`.
pub(super) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} ago", counted(seconds / 86_400, "day")),
    }
}

/// Microseconds as `4 ms` or `0.25 ms`.
pub(super) fn interval(micros: u64) -> String {
    let fraction = format!("{:03}", micros % 1_000);
    match fraction.trim_end_matches('0') {
        "" => format!("{} ms", micros / 1_000),
        fraction => format!("{}.{fraction} ms", micros / 1_000),
    }
}

/// `900 bytes`, `12 KiB`, `3.4 MiB`, `7.8 GiB`.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => counted(bytes, "byte"),
        1_024..1_048_576 => format!("{} KiB", bytes.div_ceil(1_024)),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// Bytes per second as `900 B/s`, `12.3 KiB/s`, `3.4 MiB/s`.
pub(super) fn rate(bytes_per_second: f64) -> String {
    match bytes_per_second {
        bytes if bytes < 1_024.0 => format!("{bytes:.0} B/s"),
        bytes if bytes < 1_048_576.0 => format!("{:.1} KiB/s", bytes / 1_024.0),
        bytes => format!("{:.1} MiB/s", bytes / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(count(number), text);
        }
        assert_eq!(counted(1, "sample"), "1 sample");
        assert_eq!(counted(0, "sample"), "0 samples");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn shares_are_rounded() {
        for (part, whole, text) in [
            (0, 0, "0 %"),
            (1, 3, "33 %"),
            (2, 3, "67 %"),
            (5, 5, "100 %"),
            (7, u64::MAX, "0 %"),
        ] {
            assert_eq!(share(part, whole), text);
        }
        for (part, whole, text) in [
            (0, 0, "0 %"),
            (1, 300_000, "0 %"),
            (31, 10_000, "0.31 %"),
            (1, 200, "0.50 %"),
            (3, 2, "150.00 %"),
        ] {
            assert_eq!(fine_share(part, whole), text);
        }
    }

    #[test]
    fn durations_keep_two_units() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (125, "2 min 5 s"),
            (3_600, "1 h"),
            (11_045, "3 h 4 min"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn ages_have_one_unit() {
        for (seconds, text) in [
            (0, "just now"),
            (59, "just now"),
            (60, "1 min ago"),
            (3_599, "59 min ago"),
            (7_200, "2 h ago"),
            (86_400, "1 day ago"),
            (86_400 * 59 + 5, "59 days ago"),
        ] {
            assert_eq!(age(seconds), text);
        }
    }

    #[test]
    fn intervals_and_sizes_are_short() {
        for (micros, text) in [
            (4_000, "4 ms"),
            (250, "0.25 ms"),
            (100, "0.1 ms"),
            (1_005, "1.005 ms"),
            (1_000_000, "1000 ms"),
        ] {
            assert_eq!(interval(micros), text);
        }
        for (bytes, text) in [
            (1, "1 byte"),
            (1_023, "1,023 bytes"),
            (1_025, "2 KiB"),
            (3_565_158, "3.4 MiB"),
            (8_375_186_227, "7.8 GiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
        for (bytes, text) in [
            (0.0, "0 B/s"),
            (1_023.4, "1023 B/s"),
            (1_536.0, "1.5 KiB/s"),
            (3_565_158.0, "3.4 MiB/s"),
        ] {
            assert_eq!(rate(bytes), text);
        }
    }
}
