//! `usersInfo`: users as they are stored, with their credentials only if asked for.
//! Source: MongoDB manual 8.2, "usersInfo".

use super::create_role::privilege_documents;
use crate::access_control::users_where;
use crate::authorization::Privileges;
use crate::command_entry::Command;
use crate::invocation::Invocation;
use bunko_access::{Name, Privilege, add, names_of};
use bunko_authority::privileges::users;
use bunko_authority::{Role, all_inherited, documents_of, find_user, mechanisms_of};
use bunko_bson::{ArrayBuf, DocumentBuf, DocumentRef, ValueRef, Writer, number};
use bunko_errors::{ErrorCode, Failure, Result};
use bunko_query::parse_filter;
use bunko_request::facts::{CommandFacts, Secrets};
use bunko_request::field_kinds::{Kind, field};
use bunko_request::fields::{Fields, truth};
use bunko_session::Halt;

pub(super) const COMMAND: Command = Command {
    facts: CommandFacts {
        name: "usersInfo",
        fields: &[
            field("showAuthenticationRestrictions", Kind::BooleanLike),
            field("showCredentials", Kind::BooleanLike),
            field("showCustomData", Kind::BooleanLike),
            field("showPrivileges", Kind::BooleanLike),
            field("filter", Kind::Object),
        ],
        secrets: Secrets::Named,
        ..CommandFacts::PLAIN
    },
    privileges: Privileges::By(users::users_info),
    run,
    ..Command::PLAIN
};

/// The optional parts of each user's description.
struct Shown {
    credentials: bool,
    custom_data: bool,
    privileges: bool,
    restrictions: bool,
}

fn run(invocation: &mut Invocation<'_>, reply: &mut Writer<'_>) -> Result<(), Halt> {
    let asked = ShownNames::parse(invocation, invocation.argument(), "user", invocation.request.database)?;
    let (shown, filter) = parse(invocation)?;
    let filter = filter.map(|filter| parse_filter(filter, &invocation.scope())).transpose()?;
    let is_exact = matches!(asked, ShownNames::Names(_)) && filter.is_none();
    if (shown.privileges || shown.restrictions) && !is_exact {
        let message = "Privilege or restriction details require exact-match usersInfo queries.";
        return Err(Failure::new(ErrorCode::ILLEGAL_OPERATION, message).into());
    }
    let mut position = 0;
    reply.begin_array("users");
    for user in find(invocation, &asked, &shown)? {
        let described = describe(invocation, user.as_ref(), &shown)?;
        if filter.as_ref().map_or(Ok(true), |filter| filter.try_matches(described.as_ref()))? {
            reply.push(position, &described);
            position += 1;
        }
    }
    reply.end();
    Ok(())
}

/// The parts of users that are shown, and the filter.
fn parse<'a>(fields: &Fields<'a>) -> Result<(Shown, Option<DocumentRef<'a>>)> {
    let shown = Shown {
        credentials: fields.boolean("showCredentials", false)?,
        custom_data: fields.boolean("showCustomData", true)?,
        privileges: fields.boolean("showPrivileges", false)?,
        restrictions: fields.boolean("showAuthenticationRestrictions", false)?,
    };
    Ok((shown, fields.document("filter")?))
}

/// The users to show, each once, in the order of name and database; in the order of the command if privileges or
/// restrictions are asked for.
fn find(invocation: &Invocation<'_>, asked: &ShownNames, shown: &Shown) -> Result<Vec<DocumentBuf>> {
    let mut users = match asked {
        ShownNames::Everywhere => users_where(invocation, &DocumentBuf::new())?,
        ShownNames::Database(database) => users_where(invocation, &DocumentBuf::new().with("db", database))?,
        ShownNames::Names(names) => {
            let found = names.iter().map(|name| find_user(&invocation.service.catalog, name));
            found.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect()
        }
    };
    if !(shown.privileges || shown.restrictions) {
        let place = |user: &DocumentBuf| {
            let part = |name: &str| user.as_ref().get(name).and_then(ValueRef::as_str).unwrap_or_default().to_owned();
            (part("user"), part("db"))
        };
        users.sort_by_cached_key(place);
        users.dedup_by_key(|user| place(user));
    }
    Ok(users)
}

fn describe(invocation: &Invocation<'_>, user: DocumentRef<'_>, shown: &Shown) -> Result<DocumentBuf> {
    let mut described = DocumentBuf::new();
    for field in user {
        let is_shown = match field.name {
            "credentials" => shown.credentials,
            "customData" => shown.custom_data,
            "authenticationRestrictions" => false,
            _ => true,
        };
        if is_shown {
            described.append(field.name, field.value);
        }
    }
    let mechanisms: ArrayBuf = mechanisms_of(user).into_iter().collect();
    described.append("mechanisms", &mechanisms);
    if shown.restrictions {
        match user.get(RESTRICTIONS) {
            Some(restrictions) => described.append(RESTRICTIONS, restrictions),
            None => described.append(RESTRICTIONS, &ArrayBuf::new()),
        };
    }
    if shown.privileges || shown.restrictions {
        append_inherited(invocation, &mut described, user)?;
    }
    Ok(described)
}

/// The field of a user or a role with the addresses from which users may log in.
const RESTRICTIONS: &str = "authenticationRestrictions";

/// The restrictions of roles: one array for each role that has any.
pub(super) fn restrictions_of<'r>(roles: impl IntoIterator<Item = &'r Role>) -> ArrayBuf {
    let kept = roles.into_iter().filter_map(|role| role.document.as_ref()?.as_ref().get(RESTRICTIONS)?.as_array());
    let mut restrictions = ArrayBuf::new();
    for of_role in kept.filter(|of_role| of_role.iter().next().is_some()) {
        restrictions.push(ValueRef::Array(of_role));
    }
    restrictions
}

fn append_inherited(invocation: &Invocation<'_>, described: &mut DocumentBuf, user: DocumentRef<'_>) -> Result<()> {
    let roles = all_inherited(&invocation.service.catalog, &names_of(user, "roles", "role"))?;
    let names: Vec<_> = roles.iter().map(|role| role.name.clone()).collect();
    described
        .append("inheritedRoles", &documents_of(&names))
        .append("inheritedPrivileges", &privilege_documents(&privileges_of(&roles)))
        .append("inheritedAuthenticationRestrictions", &restrictions_of(&roles));
    Ok(())
}

/// The combined privileges of roles.
pub(super) fn privileges_of<'r>(roles: impl IntoIterator<Item = &'r Role>) -> Vec<Privilege> {
    let mut privileges = Vec::new();
    for privilege in roles.into_iter().flat_map(|role| &role.privileges) {
        add(&mut privileges, privilege.clone());
    }
    privileges
}

/// The users that `usersInfo` shows, or the roles that `rolesInfo` shows.
pub(super) enum ShownNames {
    /// All users or roles, of all databases.
    Everywhere,
    /// All of one database.
    Database(String),
    Names(Vec<Name>),
}

impl ShownNames {
    /// Reads a number whose integer part is 1, a name, `{<key>: name, db: database}`, an array of the latter two, or
    /// for users `{forAllDBs: true}`.
    /// # Errors
    /// `BadValue` for anything else.
    pub fn parse(fields: &Fields<'_>, argument: ValueRef<'_>, key: &str, database: &str) -> Result<Self> {
        match argument {
            ValueRef::Document(all) if key == "user" && all.get("forAllDBs").is_some_and(truth) => Ok(Self::Everywhere),
            ValueRef::Array(names) => {
                names.iter().map(|name| read_name(fields, name, key, database)).collect::<Result<_>>().map(Self::Names)
            }
            number if number::clamp_to_i64(number) == Some(1) => Ok(Self::Database(database.to_owned())),
            name => Ok(Self::Names(vec![read_name(fields, name, key, database)?])),
        }
    }
}

fn read_name(fields: &Fields<'_>, name: ValueRef<'_>, key: &str, database: &str) -> Result<Name> {
    Name::parse(name, key, database).map_err(|_| {
        let message = format!(
            "'{}' takes 1, names, and objects with '{key}' and 'db', but got {}",
            fields.command,
            name.kind().alias()
        );
        Failure::bad_value(message)
    })
}
