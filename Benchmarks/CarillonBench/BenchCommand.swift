import ArgumentParser
import Foundation

@main
struct BenchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "carillon-bench",
        abstract: "Measure Carillon's server beside Nchan and its APNs client beside h2load, and print the tables.",
        discussion: "Exits with 1 when a figure of Carillon could not be measured.")

    @Option(help: "The Carillon to measure; a release build.")
    var executable = ".build/release/carillon"

    @Flag(help: "Small counts and one run, to try it.")
    var quick = false

    @Option(
        help: ArgumentHelp(
            "Only these rows: \(RowGroup.allCases.map(\.rawValue).joined(separator: ", ")). May be repeated."))
    var only: [RowGroup] = []

    @Option(help: "How often each is measured; the median counts.")
    var runs: Int?

    @Option(help: "Subscriptions that one update fires, in hundreds; of the items.")
    var firings: Int?

    @Option(help: "Write the table to this file as well.")
    var markdown: String?

    @Option(help: "Where data directories are made; on the disk that is to be measured.")
    var scratch = FileManager.default.temporaryDirectory.path

    func validate() throws {
        if let runs, runs < 1 { throw ValidationError("--runs must be 1 or more") }
        if let firings, firings < 100 || firings % 100 != 0 { throw ValidationError("--firings must be hundreds") }
    }

    func run() async throws {
        guard FileManager.default.isExecutableFile(atPath: executable) else {
            throw ValidationError("\(executable) is no executable; build it with make release")
        }
        OpenFiles.raiseLimit()
        let scratch = try ScratchDirectory(under: scratch)
        let interruptions = Interruption.watch(scratch)
        defer {
            for source in interruptions { source.cancel() }
            Running.killAll()
            scratch.removeAll()
        }
        var scale = quick ? Scale.quick : Scale.full
        if let runs { scale.runs = runs }
        if let firings { scale.firings = firings }
        let bench = Bench(
            scale: scale, carillon: CarillonSetup(executable: executable, scratch: scratch),
            nchan: Result { () throws(NotMeasured) in try NchanSetup(scratch: scratch) },
            wanted: only.isEmpty ? Set(RowGroup.allCases) : Set(only))
        var table = Table(machine: await Machine.description(executable: executable, scratch: scratch))
        await bench.fill(&table)
        print(table.markdown, terminator: "")
        if let markdown { try table.markdown.write(toFile: markdown, atomically: true, encoding: .utf8) }
        if table.isIncomplete { throw ExitCode.failure }
    }
}

extension RowGroup: ExpressibleByArgument {}
