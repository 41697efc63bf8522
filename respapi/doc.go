// SPDX-License-Identifier: Apache-2.0

// Package respapi serves rate limit decisions over the Redis protocol, for programs that already have a Redis client.
//
//	server, err := respapi.New(limiter, respapi.Config{})
//	…
//	listener, err := net.Listen("tcp", "127.0.0.1:6380")
//	…
//	err = server.Serve(listener)
//
// # Commands
//
//	CL.THROTTLE key max_burst count period [quantity]
//	RL.THROTTLE                                         same
//	METE.TAKE [COST n] [ID id] [MAXWAIT ms] attribute value [attribute value …]
//	METE.PEEK                                           same answer, but spend nothing
//	METE.REFUND                                         return the tokens of a request
//	METE.RESET                                          refill every bucket of a request
//
// For clients' sessions there are AUTH, CLIENT, COMMAND, CONFIG GET, ECHO, HELLO, INFO, PING, QUIT, RESET and SELECT 0.
// Other commands are errors. The server speaks RESP2 and, after HELLO 3, RESP3. It accepts inline commands.
//
// # CL.THROTTLE
//
// The command and its answer are the same as in redis-cell. The bucket has a capacity of max_burst + 1, and refills
// count tokens in period seconds. The answer is an array of five integers:
//
//  1. 0 if the request is allowed, and 1 if it is limited
//  2. the capacity
//  3. the remaining tokens
//  4. the seconds until a retry, or -1 if the request is allowed or can never be allowed
//  5. the seconds until the bucket is full
//
// Differences from redis-cell:
//
//   - Seconds are rounded up from microseconds, so that a retry is never too early.
//   - A negative quantity is an error. Use METE.REFUND with a policy.
//   - Other parameters for a live key keep its spent tokens. In redis-cell, a higher rate can deny a key for a long
//     time (its issue 54).
//   - Errors start with ERR. Parameters beyond the arithmetic are errors that name the bounds.
//
// Keys of CL.THROTTLE never collide with keys of a policy. They start with "cl throttle:", or with "cl throttle#" and
// a hash if they are too long for a store.
//
// If the store is unavailable, [mete.Config.OnStoreError] of [Config.Throttle] decides. An allowed answer is then
// [0, capacity, 0, -1, 0], and a denied one is [1, capacity, 0, 1, 1].
//
// # METE commands
//
// The attributes are the same as in the HTTP API, with the same normalization. METE.TAKE and METE.PEEK return an array of
// nine elements: the five of CL.THROTTLE for the deciding limit, and
//
//  6. the name of the deciding rule
//  7. the reason of a denial, such as token_bucket_exceeded or store_error
//  8. the milliseconds that an admitted request must wait, for MAXWAIT and stages
//  9. an array of the attributes that no rule reads, for example because of a typo
//
// Without a deciding limit, capacity and remaining tokens are -1. Names are then empty, never nil. Names of options are
// in upper case, because attributes are in lower case. METE.REFUND and METE.RESET return OK. An error that starts with
// UNAVAILABLE reports that the store did not answer them.
//
// # Security
//
// Without [Config.Authenticate], every program that can connect can spend the tokens of every client, but not return
// them ([RoleTake]): listen on loopback. The parser bounds everything that a client sends, and more tightly before AUTH. A client must read replies
// while it sends a long pipeline: the server stops to read from a client that does not. For TLS, wrap the listener.
package respapi
