// SPDX-License-Identifier: Apache-2.0

package cli

// The prose of the commands' help. Their flags follow it.

const serveAbout = `
Runs the limiter as a server. Without flags it keeps its buckets in memory,
decides by a built-in example policy and answers on the loopback address.

The admin address takes tokens: admin_tokens in the configuration file says
whose, and in which role. Without any, the server makes one and leaves it in a
file that only you can read, where these commands find it.

With --upstream it is a reverse proxy: every request is decided by the policy,
and those that are allowed go to the upstream. Only /livez and /readyz are not
passed on. The API is then on the admin address alone.

Without --upstream the main address answers the API: POST /v1/take and /v1/peek,
and /v1/decision for gateways that ask before they forward. What changes buckets
by hand (/v1/refund, /v1/reset) is on the admin address alone.

The policy is read again when its file changes and on SIGHUP. A broken file
never replaces a working policy, and neither does one whose bundle_version is
not higher. With --policy-key it must be signed: see 'mete sign'. With --policy
postgres://HOST/DATABASE it is the rules there, which 'mete rules' and SQL
change: that is in force within a second. SIGTERM and SIGINT end the server
after the requests in flight are answered; a second one ends it at once.

The buckets are full after a restart, unless they are saved. With
--store 'memory:?file=PATH' they are, every minute and when the server ends, and
it starts with them again. It does not start with a file that is damaged. With
--store redis://HOST:6379 or --store postgres://HOST/DATABASE all servers that
say so share them. A server whose store does not answer when it starts waits for
ten seconds, and ends with the exit code 3.

The flags are the settings one changes often; 'mete help config' shows all. Each
setting has an environment variable: METE_STORE, METE_TIMEOUTS_DRAIN. A flag
overrides the environment, and the environment overrides the configuration file.
METE_CONFIG names that file where --config does not.
With --check, validate the settings, the files that they name and the policy,
then exit.
`

const checkAbout = `
Reads policy files, JSON or YAML, directories of them, or the rules in
postgres://HOST/DATABASE, and reports every mistake with its place and what to
write instead. Where there is none it says in words what each limit allows,
warns of what is probably not meant, and runs the tests in the policy. Of the
words in brackets doc/lint.md says more. It is the same code that 'mete serve'
starts with.

The exit code is 0 if all is well, 1 if there is a mistake, if a test failed or,
with --strict, if there is a warning, 2 if a file cannot be read, and 3 if a
database does not answer.

Tests come out the same every time. Shares of keys ("25%") that hold hashes of
secrets are those of the servers where METE_HASH_KEY is their hash_key; without
it mete check hashes by a key of its own, and notes that.

--format sarif is for code hosts, which show findings beside the lines. For an
editor that knows JSON Schema, keep what 'mete check --schema' prints in a file,
and begin the policy with

  # yaml-language-server: $schema=policy.schema.json
`

const replayAbout = `
Runs recorded traffic through a policy in virtual time and says who would have
been limited, when and why. A TRACE is a file of access log lines (common or
combined) or of JSON lines; "-" is standard input. Files that gzip compressed
are read as they are. Several are read one after the other, the oldest first:
$(ls -tr access.log*). Times that step back are taken as they are; inside a
bucket time then stands still, and a warning says how many do. --sort replays
all requests in the order of their times.

With --compare it runs the traffic through two policies, each as if it were
alone, and says who would be newly limited and who newly admitted, under which
rule. In front of a TRACE, NEW is the new policy, unless --policy says it.

Hashes in keys are by METE_HASH_KEY, the hash_key of the servers, or without it
by a fixed key: where a rule depends on that, a note on standard error says so.

The exit code is 0 whatever was denied, 1 if a policy is broken or more requests
are newly limited than --max-newly-limited lets pass, 2 if the input cannot be
read, 3 if the store does not answer, or fails on the way.

With --store redis://HOST or postgres://HOST/DATABASE the buckets are there,
under names that nobody else uses, and are removed in the end.

A JSON line is one request. Only "at" is required, in seconds; "cost" takes the
place of the one that the policy says:

  {"at":12.5,"method":"GET","path":"/","host":"","ip":"192.0.2.1",
   "headers":{},"query":{},"jwt":{},"cost":null}
`

const takeAbout = `
Asks a running server whether something may happen now, and spends the tokens if
it may. The arguments are the facts about the request that the server's policy
reads: header:x-api-key=k1 ip:address=192.0.2.1 method=GET path=/v1/search.

The exit code is 0 if allowed, 1 if denied, 2 on wrong usage or if the server
could not decide, 3 if it does not answer, or its store does not and the rule
says that nobody passes then. So a script can say:

  mete take path=/nightly && run-the-job

With --max-wait, tokens that are not there yet are spent ahead, and the command
ends when they have come: what follows it begins in time. So it does where a
leaky bucket lets the request start later. Interrupted before, it ends with 2,
and the tokens stay spent.

With --key it is about one bucket of the policy's, and no request: tokens are
taken as far as they are there, whatever the rules say. That undoes 'mete reset
--key'. It takes the role operate. The exit code is 1 if nothing was there.
`

const peekAbout = `
Asks a running server what 'mete take' would answer, spends nothing and waits
for nothing. The arguments, the output and the exit codes are those of 'mete
take'.

With --key it shows one bucket: what is in it now, exact to a thousandth, and
the limit and the overrides that hold for it. It takes the role read. The exit
code says whether a request of the usual cost would pass.
`

const violationsAbout = `
Shows who was denied, from the database that servers with --violations record it
in: the newest first or, with "summary", the rules, keys, users, addresses,
endpoints and hours with the most. A row stands for one request, or for as many
as "denials" says: under attack, requests of one key share rows.

Keys and users are stored as hashes, unless the servers say violations_raw. To
look for one, give it as it is: it is hashed with the environment variable
METE_HASH_KEY, which is the hash_key of the servers, or without it with the
secret in the database. Addresses are stored as networks then, /24 or /48: who
looks for an address finds all of its network.

The exit code is 0 also where nothing is found, 2 on wrong usage or where there
is no table, 3 if the database does not answer.
`

const healthAbout = `
Asks a server whether it is ready for traffic, and says why not. It is for where
there is no other client, such as the HEALTHCHECK of a container. A server is
not ready while it ends, and while a store does not answer that its rules insist
on. With --live it says only whether the server runs.

The exit code is 0 if it is ready, 1 if it is not, 2 on wrong usage or if it is
not a mete server, 3 if it does not answer.
`

const versionAbout = `
Prints the version, the commit it was built from, and the version of Go.
`

const refundAbout = `
Gives back what the request would be charged, or --cost, to every bucket that
it falls under. It is asked of a server's admin address, and takes the role
operate.

The exit code is 0 if it was done, 1 if it was not as the request falls under no
limit, 2 if it was refused or on wrong usage, 3 if the server does not answer.
`

const resetAbout = `
Makes every bucket full that the request falls under: who was denied may go on
at once. It is asked of a server's admin address, and takes the role operate.
For a limit that is too low, see 'mete override'.

With --key and --reason it is one bucket that becomes full, as 'mete top' shows
those who are denied, and what it missed is said.

The exit code is 0 if it was done, 1 if it was not as the request falls under no
limit, 2 if it was refused or on wrong usage, 3 if the server does not answer.
`

const reloadAbout = `
Has a server read its policy again, as it does by itself when the file changes,
and says what came of it: a broken policy never replaces a working one. It is
asked of the server's admin address, and takes the role configure.

The exit code is 0 if the policy is in force, 1 if the old one stays, 2 on wrong
usage, and 3 if the server does not answer.
`
