import Foundation
import Testing

@testable import CarillonAPNsSimulator

struct ControlRoutesTests {
    private let simulator: APNsSimulator
    private let routes: ControlRoutes

    init() throws {
        simulator = try APNsSimulator()
        routes = ControlRoutes(simulator: simulator)
    }

    private func ask(_ method: String, _ path: String, _ body: String = "") -> ControlAnswer {
        routes.answer(method, path, body: Array(body.utf8))
    }

    static let faults: [(String, FaultRule)] = [
        (#"{"fault":"reject","reason":"TooManyRequests"}"#, FaultRule(.reject(.tooManyRequests))),
        (#"{"fault":"answer","status":502,"body":"html"}"#, FaultRule(.answer(status: 502, .html))),
        (#"{"fault":"answer","status":500}"#, FaultRule(.answer(status: 500, .empty))),
        (#"{"fault":"answer","status":500,"body":"huge","bytes":9}"#, FaultRule(.answer(status: 500, .huge(bytes: 9)))),
        (
            #"{"fault":"answer","status":403,"text":"{}","at":"headers"}"#,
            FaultRule(.answer(status: 403, .text("{}")), at: .headers)
        ),
        (#"{"fault":"delay","milliseconds":20}"#, FaultRule(.delay(.milliseconds(20)))),
        (#"{"fault":"silence","rate":0.5}"#, FaultRule(.silence, rate: 0.5)),
        (
            #"{"fault":"reset","at":"processed","repeated":true}"#,
            FaultRule(.reset(.refusedStream, isRepeated: true), at: .processed)
        ),
        (#"{"fault":"breakOff","code":"CANCEL"}"#, FaultRule(.breakOff(.cancel))),
        (#"{"fault":"goAway","reason":"Shutdown","last":"before"}"#, FaultRule(.goAway(reason: "Shutdown", last: .before))),
        (#"{"fault":"close","skip":3,"times":1,"connection":2}"#, FaultRule(.close, skip: 3, times: 1, connection: 2)),
        (#"{"fault":"streamLimit","streams":1}"#, FaultRule(.streamLimit(1))),
        (#"{"fault":"streamWindow","bytes":16}"#, FaultRule(.streamWindow(16))),
        (#"{"fault":"refuseOthers"}"#, FaultRule(.refuseOthers)),
        (#"{"fault":"wedge","pathSuffix":"ab"}"#, FaultRule(.wedge, pathSuffix: "ab")),
    ]

    @Test(arguments: faults) func `each fault can be set in JSON, and is shown as it was set`(
        json: String, rule: FaultRule
    ) throws {
        #expect(ask("POST", "/api/faults", json).status == 201)
        #expect(simulator.faults == [rule])
        let shown = try JSONDecoder().decode([FaultDocument].self, from: Data(ask("GET", "/api/faults").body.utf8))
        #expect(try shown.map { try $0.rule() } == [rule])
        #expect(ask("DELETE", "/api/faults").status == 200)
        #expect(simulator.faults.isEmpty)
    }

    @Test(arguments: [
        ("POST", "/api/faults", #"{"fault":"shout"}"#, 400), ("POST", "/api/faults", #"{"fault":"reset","codes":1}"#, 400),
        ("POST", "/api/faults", "{", 400), ("POST", "/api/faults", "{}", 400),
        ("POST", "/api/faults", #"{"fault":"reject"}"#, 400), ("POST", "/api/faults", #"{"fault":"silence","rate":2}"#, 400),
        ("POST", "/api/faults", #"{"fault":"delay","milliseconds":1e300}"#, 400),
        ("POST", "/api/faults", #"{"fault":"reset","code":"NONE"}"#, 400),
        ("PATCH", "/api/conditions", #"{"streamWindow":-1}"#, 400),
        ("PATCH", "/api/conditions", #"{"connectionWindow":65536}"#, 400),
        ("PATCH", "/api/conditions", #"{"certificate":"stolen"}"#, 400),
        ("PUT", "/api/devices/xyz", #"{"topic":"com.example.app"}"#, 400), ("PUT", "/api/devices/aa", "{}", 400),
        ("PUT", "/api/keys/short", #"{"team":"SIMTEAM001","publicKey":"x"}"#, 400),
        ("PUT", "/api/keys/SIMULATED2", #"{"team":"SIMTEAM001","publicKey":"x"}"#, 400),
        ("GET", "/api/devices/aa", "", 404), ("GET", "/api/nothing", "", 404), ("GET", "/favicon.ico", "", 404),
        ("PATCH", "/api/faults", "", 405), ("GET", "/api/certificates", "", 405),
        ("POST", "/api/clock", #"{"advanceSeconds":100000000000}"#, 400),
    ])
    func `an impossible request is refused with a sentence`(method: String, path: String, body: String, status: Int) {
        let answer = ask(method, path, body)
        #expect(answer.status == status)
        #expect(answer.body.contains("\"error\""))
        #expect(simulator.faults.isEmpty)
    }

    @Test func `a device is kept by its token`() throws {
        #expect(ask("PUT", "/api/devices/AABB", #"{"topic":"com.example.app"}"#).status == 201)
        #expect(ask("PUT", "/api/devices/aabb", #"{"online":false,"state":"unregistered","since":5}"#).status == 200)
        #expect(
            simulator.devices == [
                Device(token: "aabb", topic: "com.example.app", state: .unregistered(since: 5), isOnline: false)
            ])
        #expect(ask("GET", "/api/devices/aabb").body.contains("unregistered"))
        #expect(ask("DELETE", "/api/devices/aabb").status == 204)
        #expect(simulator.devices.isEmpty)
    }

    @Test func `conditions and rules change one by one`() {
        #expect(ask("PATCH", "/api/conditions", #"{"roundTripMilliseconds":50,"badDeviceTokens":3}"#).status == 200)
        #expect(simulator.conditions.roundTrip == .milliseconds(50))
        #expect(ask("PATCH", "/api/conditions", #"{"badDeviceTokens":0}"#).status == 200)
        #expect(simulator.conditions.badDeviceTokens == nil)
        #expect(simulator.conditions.roundTrip == .milliseconds(50))
        #expect(ask("PATCH", "/api/rules", #"{"unknownDevices":"register","shuttingDown":true}"#).status == 200)
        #expect(simulator.rules.unknownDevices == .register)
        #expect(ask("GET", "/api/rules").body.contains("\"shuttingDown\" : true"))
    }

    @Test func `the page escapes what clients sent`() throws {
        #expect(ControlPage.escaped("<a href='x'>&\"") == "&lt;a href=&#39;x&#39;&gt;&amp;&quot;")
        try simulator.add(Device(token: "aa", topic: "com.example.app"))
        #expect(ask("GET", "/").body.contains("com.example.app"))
    }

    @Test func `the clock moves`() {
        let before = simulator.now
        #expect(ask("POST", "/api/clock", #"{"advanceSeconds":3600}"#).status == 200)
        #expect(simulator.now >= before + 3_600_000)
    }
}
