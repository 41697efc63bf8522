// SPDX-License-Identifier: Apache-2.0

// Package dropin answers Envoy's rate limit service v3 as the reference server, envoyproxy/ratelimit, does. It reads
// the same configuration and makes the same decisions, with a [mete.Limiter] as the store of the counters.
//
// [Parse] reads configuration files, and [FromProto] the messages of a control plane. [NewService] returns the
// service, and [Service.SetConfig] replaces its configuration. A caller that cannot parse a new file keeps the old
// configuration and calls [Service.CountConfigError].
//
// # Differences
//
// With [FixedWindow], codes, remaining requests and resets agree with the reference server of July 2026, except for
// these differences:
//
//   - A limit in a request with the unit UNKNOWN is an error with the code INVALID_ARGUMENT. It ends the process of the
//     reference server.
//   - A limit in a request honors unit_multiplier. The reference server ignores it.
//   - Negative hits subtract from the counter, down to 0, and are never over the limit. The reference server of July
//     2026 adds them. Later versions subtract them too.
//   - Limits with detailed_metric or value_to_metric keep their metadata. Answers never change the metadata of the
//     configuration.
//   - Different descriptors never share a counter. The reference server joins keys and values with underscores, so
//     a_b=c and a=b_c share one. It also shares the counters of a minute and an hour that begin at the same time.
//   - The store's clock decides, and not the clock of the server.
//   - Up to 64 descriptors count in one step. The reference server's counters change one by one.
//   - A request has at most [MaxDescriptors] descriptors, and requests create at most [MaxNames] names of counters.
//   - A descriptor's counter stops at four trillion hits, above every limit.
//   - Errors of the store have the code UNAVAILABLE, and errors of the request INVALID_ARGUMENT. The reference server
//     answers all of them with UNKNOWN. Envoy treats them alike: its failure_mode_deny decides.
//   - The service has no cache of exceeded limits. LOCAL_CACHE_SIZE_IN_BYTES changes decisions only after a new
//     configuration or after negative hits.
//   - A value may be a fraction, such as value: 1.5. The fields of a mapping always replace the fields of its merge
//     key.
package dropin
