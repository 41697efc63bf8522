// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// func prefetch(sl *slot)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVD sl+0(FP), R0
	PRFM (R0), PLDL1KEEP
	PRFM 64(R0), PLDL1KEEP
	RET
