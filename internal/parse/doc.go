// SPDX-License-Identifier: Apache-2.0

// Package parse parses JSON documents by tables of fields. It records the place of every value and collects all
// errors, each with a path, the invalid value and a hint. A [Table] lists the fields of an object: [Report.Object]
// checks an object, and [Table.Schema] describes it in a JSON Schema.
package parse
