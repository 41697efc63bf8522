// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete/bucket"
)

// limVersion begins every text that a row has of a limit; bucket.Limit.Encode is the
// rest. Rows of another version are errors.
const limVersion = "1:"

// readLimText reads the limit of an account: the version, and then the encoded limit.
func readLimText(text string) (bucket.Limit, error) {
	encoded, known := strings.CutPrefix(text, limVersion)
	l, err := bucket.DecodeLimit(encoded)
	if !known || err != nil {
		return bucket.Limit{}, &AnswerError{"no limit: " + text}
	}
	return l, nil
}

// isUnreadable says whether an error is that of a row that holds no bucket of this
// version.
func isUnreadable(err error) bool {
	const noBucket = "MT001"
	said, ok := errors.AsType[*pgconn.PgError](err)
	return ok && said.Code == noBucket
}
