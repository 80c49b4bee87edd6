package vdso

import "encoding/binary"

// The patch is data and code in room that the vDSO leaves free behind its image. All numbers below are offsets from the start of the patch.
//
// The data that the code reads is in one of two slots; the first word says in which. A new setting goes into the other slot, and then one aligned word is written:
// a process that runs meanwhile sees the old setting or the new one.
const (
	atCurrent = 0 // offset of the slot in use
	atSlotA   = 8
	atSlotB   = 32
	atMagic   = 56
	atSaved   = 64 // the first bytes of each function as they were, 8 bytes each
	atCode    = 88

	// Of a slot, three words: nanoseconds of offset, the true time in nanoseconds since 1970 at which the drift began, and the drift in millionths.
	slotBytes = 24
	jumpBytes = 5 // jmp rel32
)

const magic = "ackproof"

// functions of the vDSO that tell the wall clock, in the order of their saved bytes.
var functions = [...]string{"__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time"}

// program gives the code, and where each of the functions begins. It is plain C ABI: it uses only what a callee may.
func program() (code []byte, starts [len(functions)]int) {
	emit := func(b ...byte) { code = append(code, b...) }
	to := func(target int, op ...byte) { // an instruction that ends in the distance to a target
		emit(op...)
		code = binary.LittleEndian.AppendUint32(code, uint32(int32(target-(atCode+len(code)+4))))
	}
	forward := func(op byte) (land func()) { // a short conditional jump to a place further down
		emit(op, 0)
		from := len(code)
		return func() { code[from-1] = byte(len(code) - from) }
	}

	// clock_gettime(edi clock, rsi timespec): the kernel's answer, corrected for CLOCK_REALTIME (0), CLOCK_REALTIME_COARSE (5) and CLOCK_TAI (11).
	starts[0] = atCode + len(code)
	emit(0xb8, 0xe4, 0x00, 0x00, 0x00) // mov eax, 228 (clock_gettime)
	emit(0x0f, 0x05)                   // syscall
	emit(0x85, 0xc0)                   // test eax, eax
	failed := forward(0x75)            // jne
	emit(0x83, 0xff, 0x1f)             // cmp edi, 31
	high := forward(0x77)              // ja
	emit(0xb9, 0x21, 0x08, 0x00, 0x00) // mov ecx, 1<<0 | 1<<5 | 1<<11
	emit(0x0f, 0xa3, 0xf9)             // bt ecx, edi
	other := forward(0x73)             // jnc
	emit(0x48, 0x69, 0x06)             // imul rax, [rsi], 1e9
	emit(0x00, 0xca, 0x9a, 0x3b)
	emit(0x48, 0x03, 0x46, 0x08)       // add rax, [rsi+8]: the true time
	to(atCurrent, 0x4c, 0x8d, 0x05)    // lea r8, [rip+atCurrent]
	emit(0x4d, 0x03, 0x00)             // add r8, [r8]: the slot
	emit(0x49, 0x89, 0xc1)             // mov r9, rax
	emit(0x49, 0x2b, 0x40, 0x08)       // sub rax, [r8+8]: since the drift began
	emit(0x49, 0x0f, 0xaf, 0x40, 0x10) // imul rax, [r8+16]
	emit(0x48, 0x99)                   // cqo
	emit(0xb9, 0x40, 0x42, 0x0f, 0x00) // mov ecx, 1e6
	emit(0x48, 0xf7, 0xf9)             // idiv rcx
	emit(0x49, 0x03, 0x00)             // add rax, [r8]
	emit(0x4c, 0x01, 0xc8)             // add rax, r9
	emit(0x48, 0x99)                   // cqo
	emit(0xb9, 0x00, 0xca, 0x9a, 0x3b) // mov ecx, 1e9
	emit(0x48, 0xf7, 0xf9)             // idiv rcx
	emit(0x48, 0x89, 0x06)             // mov [rsi], rax
	emit(0x48, 0x89, 0x56, 0x08)       // mov [rsi+8], rdx
	emit(0x31, 0xc0)                   // xor eax, eax
	failed()
	high()
	other()
	emit(0xc3) // ret

	// gettimeofday(rdi timeval, rsi timezone)
	starts[1] = atCode + len(code)
	emit(0x53)                         // push rbx
	emit(0x55)                         // push rbp
	emit(0x48, 0x83, 0xec, 0x18)       // sub rsp, 24
	emit(0x48, 0x89, 0xfb)             // mov rbx, rdi
	emit(0x48, 0x89, 0xf5)             // mov rbp, rsi
	emit(0x48, 0x85, 0xdb)             // test rbx, rbx
	noTime := forward(0x74)            // je
	emit(0x31, 0xff)                   // xor edi, edi
	emit(0x48, 0x89, 0xe6)             // mov rsi, rsp
	to(starts[0], 0xe8)                // call clock_gettime
	emit(0x48, 0x8b, 0x04, 0x24)       // mov rax, [rsp]
	emit(0x48, 0x89, 0x03)             // mov [rbx], rax
	emit(0x48, 0x8b, 0x44, 0x24, 0x08) // mov rax, [rsp+8]
	emit(0x48, 0x99)                   // cqo
	emit(0xb9, 0xe8, 0x03, 0x00, 0x00) // mov ecx, 1000
	emit(0x48, 0xf7, 0xf9)             // idiv rcx
	emit(0x48, 0x89, 0x43, 0x08)       // mov [rbx+8], rax
	noTime()
	emit(0x31, 0xc0)                   // xor eax, eax
	emit(0x48, 0x85, 0xed)             // test rbp, rbp
	noZone := forward(0x74)            // je
	emit(0x31, 0xff)                   // xor edi, edi
	emit(0x48, 0x89, 0xee)             // mov rsi, rbp
	emit(0xb8, 0x60, 0x00, 0x00, 0x00) // mov eax, 96 (gettimeofday)
	emit(0x0f, 0x05)                   // syscall
	noZone()
	emit(0x48, 0x83, 0xc4, 0x18) // add rsp, 24
	emit(0x5d, 0x5b, 0xc3)       // pop rbp; pop rbx; ret

	// time(rdi)
	starts[2] = atCode + len(code)
	emit(0x53)                   // push rbx
	emit(0x48, 0x83, 0xec, 0x10) // sub rsp, 16
	emit(0x48, 0x89, 0xfb)       // mov rbx, rdi
	emit(0x31, 0xff)             // xor edi, edi
	emit(0x48, 0x89, 0xe6)       // mov rsi, rsp
	to(starts[0], 0xe8)          // call clock_gettime
	emit(0x48, 0x8b, 0x04, 0x24) // mov rax, [rsp]
	emit(0x48, 0x83, 0xc4, 0x10) // add rsp, 16
	emit(0x48, 0x85, 0xdb)       // test rbx, rbx
	nowhere := forward(0x74)     // je
	emit(0x48, 0x89, 0x03)       // mov [rbx], rax
	nowhere()
	emit(0x5b, 0xc3) // pop rbx; ret
	return code, starts
}

// jump is the instruction at a function's start that leads from there to the patch.
func jump(from, to uint64) []byte {
	return binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(int32(int64(to)-int64(from)-jumpBytes)))
}

// words is a slot.
func words(offset, since, drift int64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(offset))
	b = binary.LittleEndian.AppendUint64(b, uint64(since))
	return binary.LittleEndian.AppendUint64(b, uint64(drift))
}
