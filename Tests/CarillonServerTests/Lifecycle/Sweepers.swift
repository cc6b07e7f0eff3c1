import CarillonCore

@testable import CarillonServer

/// The sweepers of a server with one home.
struct Sweepers: Sendable {
    private let home: Sweeper
    private let whole: StoreSweeper

    init(of domain: HomeDomain, store: any InboxStore) {
        let (settings, logger) = (ServerSettings(dataDirectory: ""), domain.logger)
        home = Sweeper(
            domain: domain, unusedDevices: UnusedDeviceRemover(domain: domain, settings: settings, logger: logger),
            settings: settings, logger: logger)
        whole = StoreSweeper(store: store, domain: domain, settings: settings, logger: logger)
    }

    /// Sweeps until the task is cancelled.
    func run() async throws {
        async let ofHome: Void = home.run()
        async let ofStore: Void = whole.run()
        _ = try await (ofHome, ofStore)
    }
}
