//! The client metadata that a client sends in its first `hello`.

use bunko_bson::{DocumentRef, ValueRef};
use bunko_errors::{ErrorCode, Failure, Result};

/// Longest document, in bytes.
/// Source: MongoDB handshake specification, "Limitations".
const DOCUMENT_BYTES_MAX: usize = 512;
/// Longest `application.name`, in bytes.
const APPLICATION_NAME_BYTES_MAX: usize = 128;

/// Checks the document.
/// # Errors
/// `ClientMetadataDocumentTooLarge`, `ClientMetadataAppNameTooLarge`, `ClientMetadataMissingField`, `TypeMismatch`.
pub fn check(client: DocumentRef<'_>) -> Result<()> {
    if client.len_bytes() > DOCUMENT_BYTES_MAX {
        return Err(Failure::new(
            ErrorCode::CLIENT_METADATA_DOCUMENT_TOO_LARGE,
            format!("The client metadata document must be less then or equal to {DOCUMENT_BYTES_MAX} bytes"),
        ));
    }
    if let Some(application) = client.get("application") {
        let name = part("application", application)?.get("name").map(|name| text("application.name", name));
        if name.transpose()?.is_some_and(|name| name.len() > APPLICATION_NAME_BYTES_MAX) {
            return Err(Failure::new(
                ErrorCode::CLIENT_METADATA_APP_NAME_TOO_LARGE,
                format!(
                    "The 'application.name' field must be less then or equal to {APPLICATION_NAME_BYTES_MAX} bytes"
                ),
            ));
        }
    }
    let driver = part("driver", required("driver", client.get("driver"))?)?;
    text("driver.name", required("driver.name", driver.get("name"))?)?;
    text("driver.version", required("driver.version", driver.get("version"))?)?;
    let system = part("os", required("os", client.get("os"))?)?;
    text("os.type", required("os.type", system.get("type"))?)?;
    Ok(())
}

fn required<'a>(name: &str, value: Option<ValueRef<'a>>) -> Result<ValueRef<'a>> {
    value.ok_or_else(|| {
        Failure::new(
            ErrorCode::CLIENT_METADATA_MISSING_FIELD,
            format!("Missing required field '{name}' in the client metadata document"),
        )
    })
}

fn part<'a>(name: &str, value: ValueRef<'a>) -> Result<DocumentRef<'a>> {
    value.as_document().ok_or_else(|| wrong_type(name, "object"))
}

fn text<'a>(name: &str, value: ValueRef<'a>) -> Result<&'a str> {
    value.as_str().ok_or_else(|| wrong_type(name, "string"))
}

fn wrong_type(name: &str, expected: &str) -> Failure {
    Failure::type_mismatch(format!(
        "The '{name}' field is required to be a BSON {expected} in the client metadata document"
    ))
}
