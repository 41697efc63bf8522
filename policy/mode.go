// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// A Mode says how far a rule is in force. It counts the keys that the rule spares,
// in hundredths of a percent, so that what is between [Enforce] and [Shadow] is
// enforced for a part of the keys and in shadow for the others, and the greater of
// two is the weaker.
type Mode uint16

const (
	Enforce Mode = 0      // deny; the zero Mode
	Shadow  Mode = 10_000 // decide, count, and never deny
	Off     Mode = 10_001 // as if the rule were not there
)

// Partial reports whether a rule in that mode is enforced for some keys and in
// shadow for others. It is always the same keys: those of 10% are among those of
// 20%, in every process; where values are hashed, in those that share
// [Options.HashKey].
func (m Mode) Partial() bool { return Enforce < m && m < Shadow }

// String returns the word of policy files: enforce, shadow, off, or for how many
// of the keys the rule is enforced, such as 25%.
func (m Mode) String() string {
	switch {
	case m == Enforce:
		return "enforce"
	case m == Shadow:
		return "shadow"
	case m >= Off:
		return "off"
	}
	return strconv.FormatFloat(float64(Shadow-m)/100, 'f', -1, 64) + "%"
}

// spares reports whether a key is among those that the mode spares. The hash is of
// the key without what tells the limits of one rule apart.
func (m Mode) spares(hash uint64) bool {
	return hash>>32*uint64(Shadow)>>32 >= uint64(Shadow-m)
}

// mode reads how far the rules of an object are in force.
func (c *compiler) mode(n *node) (m Mode, ok bool) {
	if text, percent := strings.CutSuffix(n.text, "%"); percent && n.kind == isText {
		share, ok := new(big.Rat).SetString(text)
		if !ok || !numeric(text) || share.Sign() < 0 || share.Cmp(big.NewRat(100, 1)) > 0 {
			c.add(n, "mode must be a share of the keys between 0% and 100%", `as in "25%"`)
			return Shadow, false
		}
		if share.Mul(share, big.NewRat(100, 1)); !share.IsInt() {
			c.add(n, "mode is counted in hundredths of a percent", `as in "0.25%"`)
			return Shadow, false
		}
		return Shadow - Mode(share.Num().Int64()), true
	}
	switch {
	case n.kind != isText:
	case n.text == "enforce":
		return Enforce, true
	case n.text == "shadow":
		return Shadow, true
	case n.text == "off":
		return Off, true
	}
	hint := nearest(n.text, []string{"enforce", "shadow", "off"})
	switch {
	case n.kind == isNumber:
		hint = fmt.Sprintf("write %q", n.text+"%")
	case n.text == "true" || n.text == "on":
		hint = "say enforce"
	case n.text == "false":
		hint = "say off"
	}
	c.add(n, "mode must be enforce, shadow, off, or a share of the keys such as 25%", hint)
	return Shadow, false // a misspelt mode must not make the rules behind this one unreachable, too
}
