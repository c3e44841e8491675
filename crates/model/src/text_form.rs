//! Types that are stored and exported as the text that people read.

/// Lets serde write a type with `#[serde(into = "String", try_from = "String")]` by its Display and
/// read it by its FromStr.
macro_rules! text_form {
    ($type:ty) => {
        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }

        impl TryFrom<String> for $type {
            type Error = <$type as std::str::FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
    };
}

pub(crate) use text_form;
