// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/metehq/mete/internal/parse"
)

// A Mode sets the share of its keys that a rule is enforced for. It counts the exempt keys in hundredths of a
// percent. A mode between [ModeEnforce] and [ModeShadow] is enforced for a part of the keys and in shadow for the
// others. The greater of two modes is the weaker.
type Mode uint16

const (
	ModeEnforce Mode = 0      // deny; the zero Mode
	ModeShadow  Mode = 10_000 // decide and count, but never deny
	ModeOff     Mode = 10_001 // ignore the rule
)

// IsPartial reports whether a rule with the mode is enforced for some keys and in shadow for others. The choice is
// stable: the keys of 10% are among the keys of 20%, in every process. If values are hashed, the processes must
// share [Options.HashKey].
func (m Mode) IsPartial() bool { return ModeEnforce < m && m < ModeShadow }

// String returns the form of policy files: enforce, shadow, off, or the share of the keys that the rule is enforced
// for, such as 25%.
func (m Mode) String() string {
	switch {
	case m == ModeEnforce:
		return "enforce"
	case m == ModeShadow:
		return "shadow"
	case m >= ModeOff:
		return "off"
	}
	return strconv.FormatFloat(float64(ModeShadow-m)/100, 'f', -1, 64) + "%"
}

// exempts reports whether the mode exempts the key with a hash. The hash does not include the limit's name.
func (m Mode) exempts(hash uint64) bool {
	return hash>>32*uint64(ModeShadow)>>32 >= uint64(ModeShadow-m)
}

func (c *compiler) parseMode(n *parse.Node) (m Mode, ok bool) {
	if text, percent := strings.CutSuffix(n.Text, "%"); percent && n.Kind == parse.KindText {
		share, ok := new(big.Rat).SetString(text)
		if !ok || !parse.Numeric(text) || share.Sign() < 0 || share.Cmp(big.NewRat(100, 1)) > 0 {
			c.Add(n, "mode must be a share of the keys between 0% and 100%", `as in "25%"`)
			return ModeShadow, false
		}
		if share.Mul(share, big.NewRat(100, 1)); !share.IsInt() {
			c.Add(n, "mode has at most two decimal places", `as in "0.25%"`)
			return ModeShadow, false
		}
		return ModeShadow - Mode(share.Num().Int64()), true
	}
	switch {
	case n.Kind != parse.KindText:
	case n.Text == "enforce":
		return ModeEnforce, true
	case n.Text == "shadow":
		return ModeShadow, true
	case n.Text == "off":
		return ModeOff, true
	}
	hint := parse.Nearest(n.Text, []string{"enforce", "shadow", "off"})
	switch {
	case n.Kind == parse.KindNumber:
		hint = fmt.Sprintf("write %q", n.Text+"%")
	case n.Text == "true" || n.Text == "on":
		hint = "use enforce"
	case n.Text == "false":
		hint = "use off"
	}
	c.Add(n, "mode must be enforce, shadow, off, or a share of the keys such as 25%", hint)
	return ModeShadow, false // a misspelled mode must not make later rules unreachable, too
}
