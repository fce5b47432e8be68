# The gate for x86-64: a whole ELF file, header included, so that an assembler alone makes it.
# Holds a container's first process until somebody outside has set the rules of its network and made
# its mounts: blocks SIGUSR1, waits for it, puts the mask back, enters its working directory anew, since
# something may be mounted there by now, and becomes the program that its arguments name, by an absolute path. SIGTERM ends the wait. SIGURG, which nobody waits for, is blocked as a
# mark: the kernel does not show as blocked what a process waits for. Exits with 127 where
# the program does not exist, 126 where it cannot be run. gate-bytes.ts holds the result of
#   as gate-amd64.s -o gate.o && objcopy -O binary -j .text gate.o gate
        .intel_syntax noprefix
        .set    BASE, 0x400000
        .set    SIGUSR1, 10
        .set    SIGTERM, 15
        .set    SIGURG, 23
start:
        .byte   0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0
        .short  2, 62                   # an executable, for x86-64
        .long   1
        .quad   BASE + entry - start
        .quad   segment - start, 0
        .long   0
        .short  64, 56, 1, 0, 0, 0
segment:
        .long   1, 5                    # loaded as it is, readable and executable
        .quad   0, BASE, BASE, end - start, end - start, 0x1000
entry:
        mov     r12, [rsp]              # argc
        lea     r13, [rsp + 8]          # argv
        sub     rsp, 8                  # room for the mask as it was
        mov     r10d, 8                 # bytes of a mask
        xor     edi, edi                # SIG_BLOCK
        lea     rsi, [rip + blocked]
        mov     rdx, rsp
        mov     eax, 14                 # rt_sigprocmask
        syscall
        test    eax, eax
        jnz     fail
wait:
        lea     rdi, [rip + waited]
        xor     esi, esi
        xor     edx, edx
        mov     eax, 128                # rt_sigtimedwait, for as long as it takes
        syscall
        cmp     eax, SIGUSR1
        je      open
        cmp     eax, SIGTERM
        je      ended
        cmp     eax, -4                 # EINTR: the process was stopped and continued
        je      wait
fail:
        mov     edi, 126
        jmp     exit
ended:
        mov     edi, 128 + SIGTERM
exit:
        mov     eax, 231                # exit_group
        syscall
open:
        mov     edi, 2                  # SIG_SETMASK
        mov     rsi, rsp
        xor     edx, edx
        mov     eax, 14
        syscall
        sub     rsp, 4096               # room for a path
        mov     byte ptr [rsp], 0
        mov     rdi, rsp
        mov     esi, 4096
        mov     eax, 79                 # getcwd
        syscall
        mov     rdi, rsp
        mov     eax, 80                 # chdir
        syscall
        mov     rdi, [r13 + 8]          # argv[1]
        lea     rsi, [r13 + 8]
        lea     rdx, [r13 + r12 * 8 + 8] # envp lies behind argv's null
        mov     eax, 59                 # execve
        syscall
        cmp     eax, -2                 # ENOENT
        jne     fail
        mov     edi, 127
        jmp     exit
waited: .quad   1 << (SIGUSR1 - 1) | 1 << (SIGTERM - 1)
blocked: .quad  1 << (SIGUSR1 - 1) | 1 << (SIGTERM - 1) | 1 << (SIGURG - 1)
end:
