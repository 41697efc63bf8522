// SPDX-License-Identifier: Apache-2.0

// Package parse reads documents by tables of fields. It keeps the place of every value, and
// it collects all errors, each with its path, the wrong value, and a hint. A [Table] says
// which fields an object can have: [Report.Object] checks an object by it, and [Table.Schema]
// describes the object in a JSON Schema. The package knows nothing of rules.
package parse
