# They look for three members.
TestUnifiedSpec/server-discovery-and-monitoring/unified/logging-replicaset.json
TestUnifiedSpec/server-selection/logging/replica-set.json
# They wait for a secondary, so that the driver can refuse to read there inside a transaction.
TestUnifiedSpecs/transactions/legacy/read-pref.json/secondary_readPreference
TestUnifiedSpecs/transactions/legacy/transaction-options.json/readPreference_inherited_from_client
TestUnifiedSpecs/transactions/legacy/transaction-options.json/readPreference_inherited_from_defaultTransactionOptions
TestUnifiedSpecs/transactions/legacy/transaction-options.json/startTransaction_overrides_readPreference
# They start a mongocryptd.
TestSessionsMongocryptdProse
# A find with both 'returnKey' and 'showRecordId' is not supported yet.
TestUnifiedSpec/command-monitoring/find.json/A_successful_find_with_showRecordId_and_returnKey
# The command testVersion2 is one of mongod's own tests.
TestUnifiedSpec/versioned-api/test-commands-strict-mode.json/Running_a_command_that_is_not_part_of_the_versioned_API_results_in_an_error
# They want a refusal that names Atlas, where search indexes are kept here.
TestUnifiedSpec/index-management/
