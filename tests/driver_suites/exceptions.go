# They look for three members, and wait for them.
not run: TestUnifiedSpec/server-discovery-and-monitoring/unified/logging-replicaset.json
not run: TestUnifiedSpec/server-selection/logging/replica-set.json
# They wait for a secondary, so that the driver can refuse to read there inside a transaction.
not run: TestUnifiedSpecs/transactions/legacy/read-pref.json/secondary_readPreference
not run: TestUnifiedSpecs/transactions/legacy/transaction-options.json/readPreference_inherited_from_client
not run: TestUnifiedSpecs/transactions/legacy/transaction-options.json/readPreference_inherited_from_defaultTransactionOptions
not run: TestUnifiedSpecs/transactions/legacy/transaction-options.json/startTransaction_overrides_readPreference
# It waits until another member is primary.
not run: TestUnifiedSpecs/server-discovery-and-monitoring/integration/rediscover-quickly-after-step-down.json
# 'replSetStepDown' with 'force' is refused as not supported yet.
TestConnectionsSurvivePrimaryStepDown/getMore_iteration
# It looks up names of MongoDB's own in the network's DNS, and panics if they are not found.
not run: TestInitialDNSSeedlistDiscoverySpec
# All indexes of a collection are compressed in one way: 'indexOptionDefaults.storageEngine' with a compressor for them,
# and 'storageEngine' of an index, are refused as not supported yet. The first test then panics.
not run: TestDatabase/create_collection/options/all_options_except_collation_and_csppi
TestIndexView/create_one/all_options
# In a container, the driver says so in its first message, which they do not expect.
TestHandshakeProse/
# They start a mongocryptd.
TestSessionsMongocryptdProse
# The command testVersion2 is one of mongod's own tests.
TestUnifiedSpec/versioned-api/test-commands-strict-mode.json/Running_a_command_that_is_not_part_of_the_versioned_API_results_in_an_error
# They expect a refusal that names Atlas. Bunko has search indexes.
TestUnifiedSpec/index-management/
