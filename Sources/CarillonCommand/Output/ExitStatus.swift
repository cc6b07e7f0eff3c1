import ArgumentParser

/// The exit codes. They follow `sysexits.h` where it defines a suitable one.
enum ExitStatus {
    static let otherOutcome = ExitCode(3)
    static let refused = ExitCode(65)
    static let noInput = ExitCode(66)
    static let unreachable = ExitCode(69)
    static let dataDirectory = ExitCode(73)
    static let output = ExitCode(74)
    static let tryAgain = ExitCode(75)
    static let notAllowed = ExitCode(77)
    /// The code that shells report for a program that Ctrl-C ended.
    static let interrupted = ExitCode(130)
}
