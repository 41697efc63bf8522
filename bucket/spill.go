// SPDX-License-Identifier: Apache-2.0

package bucket

// A Spill is the effect of a full store on a bucket that it has no space for.
type Spill uint8

const (
	SpillNone   Spill = iota // the store has the bucket, or space for it
	SpillShared              // the bucket is shared by all keys of the limit without their own
	SpillOpened              // the limit admitted the cost as a full bucket, and recorded nothing
	SpillClosed              // the limit denied the cost. RetryAfter is an estimate
)

// String returns "shared", "opened" or "closed", and "" for SpillNone.
func (s Spill) String() string {
	if names := [...]string{"", "shared", "opened", "closed"}; int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}
