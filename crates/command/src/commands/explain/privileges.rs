//! The privileges for `explain`: those of the explained command.

use crate::commands::find;
use crate::service::Service;
use bunko_authority::Asker;
use bunko_request::Request;

/// Whether the client may run the explained command.
pub(super) fn may_explain(service: &Service, asker: &Asker<'_>, request: &Request<'_>) -> bool {
    let inner = request.argument().as_document();
    let command = inner.and_then(|body| find(body.first()?.name));
    match (inner, command) {
        // The command itself refuses an inner command that cannot be explained.
        (Some(_), Some(command)) if command.is_explain() => asker.user().is_some(),
        (Some(body), Some(command)) => {
            let inner = Request::new(request.database, body, None);
            asker.user().is_some() && command.privileges.allow(service, asker, &inner)
        }
        _ => asker.user().is_some(),
    }
}
