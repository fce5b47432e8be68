// The gate for AArch64: a whole ELF file, header included, so that an assembler alone makes it.
// Holds a container's first process until somebody outside has set the rules of its network and made
// its mounts: blocks SIGUSR1, waits for it, puts the mask back, enters its working directory anew, since
// something may be mounted there by now, and becomes the program that its arguments name, by an absolute path. SIGTERM ends the wait. SIGURG, which nobody waits for, is blocked as a
// mark: the kernel does not show as blocked what a process waits for. Exits with 127 where
// the program does not exist, 126 where it cannot be run. gate-bytes.ts holds the result of
//   aarch64-linux-gnu-as gate-arm64.s -o gate.o && aarch64-linux-gnu-objcopy -O binary -j .text gate.o gate
        .set    BASE, 0x400000
        .set    SIGUSR1, 10
        .set    SIGTERM, 15
        .set    SIGURG, 23
start:
        .byte   0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0
        .short  2, 183                  // an executable, for AArch64
        .long   1
        .quad   BASE + entry - start
        .quad   segment - start, 0
        .long   0
        .short  64, 56, 1, 0, 0, 0
segment:
        .long   1, 5                    // loaded as it is, readable and executable
        .quad   0, BASE, BASE, end - start, end - start, 0x10000
entry:
        ldr     x19, [sp]               // argc
        add     x20, sp, 8              // argv
        sub     sp, sp, 16              // room for the mask as it was
        mov     x3, 8                   // bytes of a mask
        mov     x0, 0                   // SIG_BLOCK
        adr     x1, blocked
        mov     x2, sp
        mov     x8, 135                 // rt_sigprocmask
        svc     0
        cbnz    x0, fail
wait:
        adr     x0, waited
        mov     x1, 0
        mov     x2, 0
        mov     x3, 8
        mov     x8, 137                 // rt_sigtimedwait, for as long as it takes
        svc     0
        cmp     x0, SIGUSR1
        b.eq    open
        cmp     x0, SIGTERM
        b.eq    ended
        cmn     x0, 4                   // EINTR: the process was stopped and continued
        b.eq    wait
fail:
        mov     x0, 126
        b       exit
ended:
        mov     x0, 128 + SIGTERM
exit:
        mov     x8, 94                  // exit_group
        svc     0
open:
        mov     x0, 2                   // SIG_SETMASK
        mov     x1, sp
        mov     x2, 0
        mov     x8, 135
        svc     0
        sub     sp, sp, 4096            // room for a path
        strb    wzr, [sp]
        mov     x0, sp
        mov     x1, 4096
        mov     x8, 17                  // getcwd
        svc     0
        mov     x0, sp
        mov     x8, 49                  // chdir
        svc     0
        ldr     x0, [x20, 8]            // argv[1]
        add     x1, x20, 8
        add     x2, x20, x19, lsl 3
        add     x2, x2, 8               // envp lies behind argv's null
        mov     x8, 221                 // execve
        svc     0
        cmn     x0, 2                   // ENOENT
        b.ne    fail
        mov     x0, 127
        b       exit
waited: .quad   1 << (SIGUSR1 - 1) | 1 << (SIGTERM - 1)
blocked: .quad  1 << (SIGUSR1 - 1) | 1 << (SIGTERM - 1) | 1 << (SIGURG - 1)
end:
