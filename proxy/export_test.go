// SPDX-License-Identifier: Apache-2.0

package proxy

// A FieldRow is a row of the table of header fields.
type FieldRow = fieldRow

// FieldRows are the rows of the table.
var FieldRows = fieldRows
