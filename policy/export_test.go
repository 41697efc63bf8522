// SPDX-License-Identifier: Apache-2.0

package policy

// Bounds that tests and the documentation name.
const (
	MaxAttributeBytes = maxAttributeBytes
	MaxLimitKeys      = maxLimitKeys
	MaxLimits         = maxLimits
	MaxMatchClauses   = maxMatchClauses
	MaxMatchValues    = maxMatchValues
	MaxPolicies       = maxPolicies
	MaxStageDelay     = maxStageDelay
	MaxStages         = maxStages
)
