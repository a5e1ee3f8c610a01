// Users, roles and logins of a database.
((shell) => {
  const { host, demand, demandString } = shell;
  const { MongoshInvalidInputError } = shell.errors;

  const OF_USERS = ["showCredentials", "showCustomData", "showPrivileges", "showAuthenticationRestrictions", "filter"];
  const chosen = (options) => (
    Object.fromEntries(Object.entries(shell.demandKnown(options, OF_USERS, "usersInfo")).filter(([, value]) => value !== undefined))
  );
  const concern = (writeConcern) => (writeConcern === undefined ? {} : { writeConcern });
  const password = (pwd) => (typeof pwd === "function" ? pwd() : pwd);
  const demandServerDigest = (digestor = "server") => {
    if (digestor !== "server") shell.unsupported(`passwordDigestor: '${String(digestor)}'`, "the server digests passwords");
  };

  shell.hide(shell.Database.prototype, {
    createUser(user, writeConcern) {
      const { user: name, pwd, roles, ...fields } = demand(user, 0, "Database.createUser");
      if (name === undefined) throw new MongoshInvalidInputError("[COMMON-10001] Missing required property: \"user\"");
      if (roles === undefined) throw new MongoshInvalidInputError("[COMMON-10001] Missing required property: \"roles\"");
      if ("createUser" in user) throw new MongoshInvalidInputError('[COMMON-10001] Cannot set createUser field in helper method');
      const { passwordDigestor, ...rest } = fields;
      demandServerDigest(passwordDigestor);
      return this._run({ createUser: name, ...(pwd !== undefined && { pwd: password(pwd) }), roles, ...rest, ...concern(writeConcern) });
    },
    updateUser(name, changes, writeConcern) {
      demandString(name, 0, "Database.updateUser");
      const { pwd, passwordDigestor, ...fields } = demand(changes, 1, "Database.updateUser");
      demandServerDigest(passwordDigestor);
      return this._run({ updateUser: name, ...(pwd !== undefined && { pwd: password(pwd) }), ...fields, ...concern(writeConcern) });
    },
    changeUserPassword(name, pwd, writeConcern) {
      demandString(name, 0, "Database.changeUserPassword");
      return this._run({ updateUser: name, pwd: demand(password(pwd), 1, "Database.changeUserPassword"), ...concern(writeConcern) });
    },
    dropUser(name, writeConcern) {
      return this._run({ dropUser: demandString(name, 0, "Database.dropUser"), ...concern(writeConcern) });
    },
    removeUser(name, writeConcern) { return this.dropUser(name, writeConcern); },
    dropAllUsers(writeConcern) { return this._run({ dropAllUsersFromDatabase: 1, ...concern(writeConcern) }); },
    grantRolesToUser(name, roles, writeConcern) {
      return this._run({ grantRolesToUser: demandString(name, 0, "Database.grantRolesToUser"), roles: demand(roles, 1, "Database.grantRolesToUser"), ...concern(writeConcern) });
    },
    revokeRolesFromUser(name, roles, writeConcern) {
      return this._run({ revokeRolesFromUser: demandString(name, 0, "Database.revokeRolesFromUser"), roles: demand(roles, 1, "Database.revokeRolesFromUser"), ...concern(writeConcern) });
    },
    getUser(name, options = {}) {
      demandString(name, 0, "Database.getUser");
      return this._run({ usersInfo: { user: name, db: this._name }, ...chosen(options) }).users[0] ?? null;
    },
    getUsers(options = {}) { return this._run({ usersInfo: 1, ...chosen(options) }); },

    createRole(role, writeConcern) {
      const { role: name, privileges, roles, ...fields } = demand(role, 0, "Database.createRole");
      if (name === undefined) throw new MongoshInvalidInputError("[COMMON-10001] Missing required property: \"role\"");
      if (roles === undefined) shell.refuseInput('Missing required property: "roles"');
      if (privileges === undefined) shell.refuseInput('Missing required property: "privileges"');
      return this._run({ createRole: name, privileges, roles, ...fields, ...concern(writeConcern) });
    },
    updateRole(name, changes, writeConcern) {
      return this._run({ updateRole: demandString(name, 0, "Database.updateRole"), ...changes, ...concern(writeConcern) });
    },
    dropRole(name, writeConcern) {
      return this._run({ dropRole: demandString(name, 0, "Database.dropRole"), ...concern(writeConcern) });
    },
    dropAllRoles(writeConcern) { return this._run({ dropAllRolesFromDatabase: 1, ...concern(writeConcern) }); },
    getRole(name, options = {}) {
      demandString(name, 0, "Database.getRole");
      return this._run({ rolesInfo: { role: name, db: this._name }, ...options }).roles[0] ?? null;
    },
    getRoles(options = {}) { return this._run({ rolesInfo: 1, ...options }); },
    logout() { return this._run({ logout: 1 }); },

    // `auth()`, `auth(user)`, `auth(user, password)` or `auth({user, pwd, mechanism, db})`.
    auth(first, second) {
      const given = typeof first === "object" && first !== null ? first : { user: first, pwd: second };
      if (given.user === undefined) shell.refuseInput("Missing required argument at position 0 (Database.auth)");
      const { user, mechanism = null, db = this._name } = given;
      const pwd = password(given.pwd) ?? globalThis.passwordPrompt();
      try {
        shell.ask(() => host.login(this._mongo._link, { user, pwd, mechanism, db }));
      } catch (error) {
        if (error.codeName === "AuthenticationFailed") error.message = "Authentication failed.";
        throw error;
      }
      return { ok: 1 };
    },
  });
  const rolesOfRole = { grantRolesToRole: "roles", revokeRolesFromRole: "roles", grantPrivilegesToRole: "privileges", revokePrivilegesFromRole: "privileges" };
  for (const [command, field] of Object.entries(rolesOfRole)) {
    shell.hide(shell.Database.prototype, { [command](name, list, writeConcern) {
      return this._run({ [command]: demandString(name, 0, `Database.${command}`), [field]: demand(list, 1, `Database.${command}`), ...concern(writeConcern) });
    } });
  }

  shell.globals({ passwordPrompt: () => shell.ask(() => host.password("Enter password: ")) });
})
