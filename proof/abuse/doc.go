// SPDX-License-Identifier: Apache-2.0

// Package abuse attacks the real program, with a test or more for each row of the attack table in doc/security.md.
package abuse
