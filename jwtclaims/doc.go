// SPDX-License-Identifier: Apache-2.0

// Package jwtclaims provides a policy's jwt: attributes from verified bearer tokens. The keys come from a JSON
// Web Key Set (RFC 7517) in a file or at a URL.
//
//	verifier, err := jwtclaims.New(ctx, jwtclaims.Config{KeySet: "https://id.example.com/jwks.json", Issuer: "https://id.example.com"})
//	…
//	httplimit.New(limiter, httplimit.Config{Attribute: verifier.Attribute})
//
// An invalid token has no claims: the attributes are missing, as in a request without a token, and the policy
// determines what happens (on_missing). Invalid tokens are counted by reason.
//
// A valid token has, following RFC 8725:
//
//   - one Authorization header, at most [Config.MaxTokenBytes], three parts, no duplicate header or claim, at
//     most 16 levels of nesting, and no critical extensions (crit);
//   - an algorithm in [Config.Algorithms]. "none" is never accepted, and HMAC only if listed;
//   - a signature by a key in the set that is of the algorithm's kind, so that a public key is never used as a
//     secret. A key with an alg verifies only that algorithm;
//   - an exp in the future. A token without exp could be revoked only by changing keys. If nbf is present, it
//     must be in the past; iss and aud must match [Config].
//
// Claims are strings, numbers as written, and booleans at the top level. A list of them is one text, with spaces between
// its values, unless a value is empty or has a space. Other claims are missing.
package jwtclaims
