/// The amounts of all measurements.
struct Scale: Sendable {
    var runs = 3
    var connections = 10_000
    var connectsInFlight = 256
    var settle = Duration.seconds(5)
    var latencyMessages = 10_000
    var senders = 64
    var offlineDevices = 1000
    var offlineMessages = 100_000
    var registrations = 10_000
    var wakes = 20_000
    var registryDevices = 1_000_000
    var registryProbe = 20_000
    var evaluations = 2_000_000
    var itemUpdates = 1_000_000
    var firings = 100_000
    var updateDevices = 1_000_000
    var updateProbe = 20_000
    /// Whether this is a quick trial.
    var isQuick = false
    var busyDevices = 200_000
    var liveDevices = 1000
    var liveMessages = 100_000
    var catchUpDevices = 200
    var catchUpEach = 500
    var restartDevices = 2000
    var restartEnvelopes = 1_000_000
    var serviceCalls = 5000
    var serviceCallsAtOnce = 19_200
    var serviceRequests = 100_000
    var servicesUnfinished = 10_000
    var serviceProviders = 1_000_000
    var serviceSearches = 2000
    var sending = SendingScale()

    static let full = Scale()

    static let quick = Scale(
        runs: 1, connections: 1000, settle: .seconds(1), latencyMessages: 1000, offlineDevices: 200,
        offlineMessages: 10_000, registrations: 1000, wakes: 1000, registryDevices: 10_000, registryProbe: 1000,
        evaluations: 20_000, itemUpdates: 20_000, firings: 2000, updateDevices: 10_000,
        updateProbe: 1000, isQuick: true,
        busyDevices: 5000, liveDevices: 200,
        liveMessages: 10_000,
        catchUpDevices: 40, catchUpEach: 100,
        restartDevices: 100, restartEnvelopes: 20_000,
        serviceCalls: 300, serviceCallsAtOnce: 1280, serviceRequests: 5000, servicesUnfinished: 2000,
        serviceProviders: 20_000, serviceSearches: 300, sending: .quick)
}
