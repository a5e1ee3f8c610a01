//! Bytes made into commands: names mostly from a dictionary, and values of every type, so that the code after the BSON
//! parser is reached.

use bunko_bson::{ArrayBuf, BinarySubtype, DocumentBuf, Timestamp, ValueRef};

/// Deepest nesting that is made. Deeper documents come as frames.
const DEPTH_MAX: u32 = 6;
/// Greatest number of commands of one input, fields of a document, and elements of an array.
const COMMANDS_MAX: u32 = 4;
const FIELDS_MAX: u8 = 6;
/// Time limit of a command: slow work is cut off, so that work that ignores the limit is found.
const TIME_MAX_MS: i32 = 500;

const DATABASES: &[&str] = &["test", "test", "admin", "config", "local", "$external", "", "a.b"];

#[rustfmt::skip]
const COMMANDS: &[&str] = &[
    "find", "insert", "update", "delete", "aggregate", "findAndModify", "count", "distinct", "getMore", "killCursors",
    "create", "createIndexes", "drop", "dropDatabase", "dropIndexes", "collMod", "renameCollection", "listCollections",
    "listDatabases", "listIndexes", "collStats", "dbStats", "dataSize", "validate", "explain", "bulkWrite", "mapReduce",
    "hello", "isMaster", "saslStart", "saslContinue", "authenticate", "logout", "connectionStatus", "ping", "buildInfo",
    "createUser", "updateUser", "dropUser", "usersInfo", "grantRolesToUser", "revokeRolesFromUser", "createRole",
    "updateRole", "dropRole", "rolesInfo", "grantPrivilegesToRole", "grantRolesToRole", "currentOp", "killOp",
    "serverStatus", "getParameter", "setParameter", "getLog", "hostInfo", "profile", "top", "startSession",
    "endSessions", "refreshSessions", "killSessions", "killAllSessions", "killAllSessionsByPattern",
    "commitTransaction", "abortTransaction", "applyOps", "convertToCapped", "cloneCollectionAsCapped", "compact",
    "planCacheClear", "planCacheSetFilter", "planCacheListFilters", "setFeatureCompatibilityVersion",
    "getClusterParameter", "setClusterParameter", "setDefaultRWConcern", "getDefaultRWConcern", "replSetInitiate",
    "replSetGetStatus", "listCommands", "features", "whatsmyuri", "getCmdLineOpts", "validateDBMetadata", "dbHash",
    "bunkoBackup", "bunkoBulkInsert", "setIndexCommitQuorum", "lockInfo", "getDiagnosticData",
];

#[rustfmt::skip]
const NAMES: &[&str] = &[
    "_id", "a", "b", "c", "a.b", "a.0", "filter", "query", "q", "u", "update", "remove", "new", "upsert", "multi", "limit",
    "skip", "sort", "projection", "hint", "batchSize", "singleBatch", "cursor", "pipeline", "documents", "updates",
    "deletes", "ops", "nsInfo", "ns", "key", "name", "indexes", "index", "unique", "sparse", "expireAfterSeconds",
    "partialFilterExpression", "collation", "locale", "strength", "validator", "viewOn", "capped", "size", "max",
    "timeseries", "timeField", "metaField", "clusteredIndex", "to", "dropTarget", "readConcern", "level", "writeConcern",
    "w", "j", "lsid", "id", "txnNumber", "autocommit", "startTransaction", "$clusterTime", "let", "comment",
    "arrayFilters", "bypassDocumentValidation", "ordered", "user", "pwd", "roles", "role", "db", "privileges", "resource",
    "actions", "collection", "anyResource", "cluster", "mechanism", "payload", "options", "skipEmptyExchange",
    "conversationId", "speculativeAuthenticate", "saslSupportedMechs", "client", "compression", "apiVersion", "apiStrict",
    "$match", "$project", "$group", "$sort", "$lookup", "$unwind", "$facet", "$out", "$merge", "$addFields", "$bucket",
    "$setWindowFields", "$graphLookup", "$unionWith", "$densify", "$fill", "$sample", "$replaceRoot", "$redact", "$count",
    "$changeStream", "$documents", "from", "localField", "foreignField", "as", "into", "coll", "path", "boundaries",
    "$eq", "$gt", "$in", "$nin", "$and", "$or", "$nor", "$not", "$exists", "$type", "$regex", "$options", "$elemMatch",
    "$size", "$all", "$mod", "$expr", "$jsonSchema", "$text", "$search", "$near", "$geoWithin", "$geometry", "type",
    "coordinates", "properties", "required", "$set", "$unset", "$inc", "$mul", "$push", "$each", "$slice", "$position",
    "$pull", "$addToSet", "$pop", "$rename", "$bit", "$setOnInsert", "$currentDate", "$min", "$max", "$add", "$concat",
    "$cond", "if", "then", "else", "$map", "input", "in", "$reduce", "initialValue", "$filter", "$range", "$substrCP",
    "$dateToString", "$dateFromString", "format", "date", "timezone", "$toString", "$convert", "onError", "$switch",
    "branches", "default", "$regexMatch", "regex", "$function", "body", "args", "lang", "$zip", "inputs", "$sortArray",
    "sortBy", "$sum", "$first", "$topN", "n", "output", "window", "granularity", "$literal", "$getField", "field",
    "updateMods", "insert", "delete", "document", "cursors", "forAllDBs", "showPrivileges", "minimumFCV", "freeStorage",
];

#[rustfmt::skip]
const TEXTS: &[&str] = &[
    "", "c", "d", "test.c", "admin.system.users", "system.users", "system.views", "system.profile", "$a", "$$ROOT",
    "$$NOW", "$a.b", "root", "read", "u", "majority", "snapshot", "local", "SCRAM-SHA-256", "SCRAM-SHA-1", "MONGODB-X509",
    "PLAIN", "bixuPXUscj0wMTIzNDU2Nzg5", "Y2E9", "string", "int", "Point", "Polygon", "%Y-%m-%d", "America/New_York",
    "2024-02-30T00:00:00Z", "^a.*b$", "(a+)+$", "text", "2dsphere", "hashed", "1", "en", "find", "insert", "anyAction",
    "executionStats", "queryPlanner", "set", "before", "after", "\u{0}", "\u{10ffff}",
];

/// The input's bytes, which are used up from the front.
pub struct Shape<'a> {
    rest: &'a [u8],
    commands: u32,
}

impl<'a> Shape<'a> {
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest, commands: 0 }
    }

    /// The next command and its database; `None` at the end.
    pub fn command(&mut self) -> Option<(&'static str, DocumentBuf)> {
        if self.rest.is_empty() || self.commands >= COMMANDS_MAX {
            return None;
        }
        self.commands += 1;
        let database = self.of(DATABASES);
        let name = self.of(COMMANDS);
        let mut body = DocumentBuf::new();
        // Most commands have a collection's name here.
        if self.byte().is_multiple_of(4) {
            self.append(&mut body, name, 0);
        } else {
            body.append(name, "c");
        }
        for _ in 0..self.byte() % FIELDS_MAX {
            let name = self.of(NAMES);
            self.append(&mut body, name, 0);
        }
        if !matches!(name, "getMore" | "commitTransaction" | "abortTransaction") {
            body.append("maxTimeMS", TIME_MAX_MS);
        }
        Some((database, body))
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    fn of(&mut self, words: &'static [&'static str]) -> &'static str {
        let number = usize::from(self.byte()) | usize::from(self.byte() & 1) << 8;
        words[number % words.len()]
    }

    fn number(&mut self) -> i64 {
        const NUMBERS: [i64; 12] =
            [0, 1, -1, 2, 10, 1 << 31, i64::MAX, i64::MIN, i32::MAX as i64, i32::MIN as i64, 1 << 53, 1000];
        let choice = self.byte();
        if choice < 200 { NUMBERS[usize::from(choice) % NUMBERS.len()] } else { i64::from(self.byte()) }
    }

    fn append(&mut self, out: &mut DocumentBuf, name: &str, depth: u32) {
        let choice = self.byte() % 24;
        match choice {
            0..=4 if depth < DEPTH_MAX => drop(out.append(name, &self.document(depth + 1))),
            5..=8 if depth < DEPTH_MAX => drop(out.append(name, &self.array(depth + 1))),
            _ => self.scalar(choice, |value| _ = out.append(name, value)),
        }
    }

    fn document(&mut self, depth: u32) -> DocumentBuf {
        let mut document = DocumentBuf::new();
        for _ in 0..self.byte() % FIELDS_MAX {
            let name = self.of(NAMES);
            self.append(&mut document, name, depth);
        }
        document
    }

    fn array(&mut self, depth: u32) -> ArrayBuf {
        let mut array = ArrayBuf::new();
        for _ in 0..self.byte() % FIELDS_MAX {
            match self.byte() % 4 {
                0 | 1 if depth < DEPTH_MAX => drop(array.push(&self.document(depth + 1))),
                _ => {
                    let choice = self.byte() % 24;
                    self.scalar(choice, |value| _ = array.push(value));
                }
            }
        }
        array
    }

    fn scalar(&mut self, choice: u8, put: impl FnOnce(ValueRef<'_>)) {
        match choice {
            9..=12 => put(ValueRef::String(self.of(TEXTS))),
            13 => put(ValueRef::Int64(self.number())),
            14 | 15 => put(ValueRef::Int32(self.number() as i32)),
            16 => {
                const DOUBLES: [f64; 7] = [0.0, -0.0, 1.0, 0.5, f64::NAN, f64::INFINITY, -1e308];
                put(ValueRef::Double(DOUBLES[usize::from(self.byte()) % DOUBLES.len()]));
            }
            17 => put(ValueRef::Boolean(true)),
            18 => put(ValueRef::Null),
            19 => put(ValueRef::DateTime(self.number())),
            20 => {
                let bytes = [self.byte(); 16];
                put(ValueRef::Binary { subtype: BinarySubtype::UUID, bytes: &bytes });
            }
            21 => put(ValueRef::Regex { pattern: self.of(TEXTS).trim_matches('\0'), options: "i" }),
            22 => put(ValueRef::Timestamp(Timestamp { seconds: self.number() as u32, increment: 1 })),
            23 => put(ValueRef::MaxKey),
            _ => put(ValueRef::Boolean(false)),
        }
    }
}
