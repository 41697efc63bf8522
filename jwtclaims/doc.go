// SPDX-License-Identifier: Apache-2.0

// Package jwtclaims supplies a policy's jwt: attributes from bearer tokens whose
// signature it has verified, with the keys of a JSON Web Key Set (RFC 7517) in a
// file or at a URL.
//
//	verifier, err := jwtclaims.New(ctx, jwtclaims.Config{KeySet: "https://id.example.com/jwks.json", Issuer: "https://id.example.com"})
//	…
//	httplimit.New(limiter, httplimit.Config{Attribute: verifier.Attribute})
//
// A token that is not good in every respect has no claims: the attributes are
// missing, as they are in a request without a token, and the policy says what
// happens then (on_missing). It is counted, with the reason.
//
// What is required of a token, after RFC 8725:
//
//   - one Authorization header, at most [Config.MaxTokenBytes], three parts, no
//     header or claim named twice, nothing nested deeper than 16, no critical
//     extensions (crit);
//   - an algorithm that is in [Config.Algorithms]. "none" never is, and neither are
//     HMAC's unless named;
//   - a signature by a key of the set that is of the algorithm's own kind, so that a
//     public key is never taken for a secret. A key that names its algorithm
//     verifies no other one;
//   - an exp in the future, always. A token without end could not be taken back but
//     by a change of keys, and is mostly a mistake of who issues it. nbf, where it is
//     there, is past; iss and aud are what [Config] says.
//
// Claims are read as the front doors read those of tokens that something else has
// verified: strings, numbers as they are written, and booleans, at the top level.
package jwtclaims
