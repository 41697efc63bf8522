// SPDX-License-Identifier: Apache-2.0

// Package bundle follows a signed policy at an https:// address, so that a fleet of servers has
// one source.
//
// A [Follower] polls the address with If-None-Match. A new bundle replaces the active one only
// if its signature is valid, its bundle_version is higher, and it compiles. The last good bundle
// is kept in a file, with its signature. A server starts from this file while the source is
// down, and never goes back to an older bundle.
//
// The signature of https://host/policy.yaml is at https://host/policy.yaml.sig: see package
// policysign. A bundle that is replaced between the two requests has no valid signature, so
// both are requested once more before that counts as a failure.
package bundle
