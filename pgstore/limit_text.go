// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete/bucket"
)

// limVersion begins the text of a limit in a row, before bucket.Limit.Encode. Rows of another version are errors.
const limVersion = "1:"

func parseLimit(text string) (bucket.Limit, error) {
	encoded, known := strings.CutPrefix(text, limVersion)
	l, err := bucket.DecodeLimit(encoded)
	if !known || err != nil {
		return bucket.Limit{}, &AnswerError{"invalid limit: " + text}
	}
	return l, nil
}

// isUnreadable reports whether a row has an unknown format.
func isUnreadable(err error) bool {
	const noBucket = "MT001"
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == noBucket
}
