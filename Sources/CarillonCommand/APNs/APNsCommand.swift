import ArgumentParser

struct APNsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "apns", abstract: "Tools for Apple's push service.", subcommands: [SimulateCommand.self])
}
